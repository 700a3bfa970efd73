import { HttpError } from '../../../http/errors.js';
import type { RawRequest } from '../../../http/route.js';
import { Query } from './query.js';

/** Ids, or values of a filter, in one request. */
const MAX_VALUES = 10_000;
/** Filters that JSON may hold as numbers. */
const NUMERIC = ['count', 'fromDate', 'toDate', 'responseStatus'];
/** What goes with ids: none of them chooses anything. */
const BESIDE_IDS = ['count', 'cursor', 'order'];

/** What a bulk call is about: the named ids, none of them or many; `undefined`: what fits the filters of the query. */
export interface Selection {
  readonly ids: string[] | undefined;
  readonly query: Query;
}

/** What is particular to a bulk call. */
interface SelectionOptions {
  /** Filters that are true or false. */
  readonly flags?: readonly string[];
  /** Filters beside ids count for nothing, instead of being refused. */
  readonly idsWin?: boolean;
}

/**
 * Reads ids and filters from the query, or from a JSON body as SDKs before 2026 send them.
 * @param idsKey `messageIds`, `dlqIds` or `workflowRunIds`
 * @param keys the filters that there are
 * @throws HttpError 400 for an unknown key, a value of a wrong type, ids beside filters: a call that is not understood
 *   must never act on everything
 */
export async function readSelection(
  request: RawRequest,
  idsKey: string,
  keys: readonly string[],
  { flags = [], idsWin = false }: SelectionOptions = {},
): Promise<Selection> {
  const query = new Query(request.target);
  refuseEmptyId(request, query);
  await query.addBody(request.body, NUMERIC, MAX_VALUES, flags);
  query.allowOnly([idsKey, ...keys]);
  const ids = query.list(idsKey);
  if (ids === undefined) return { ids, query };
  if (ids.length > MAX_VALUES)
    throw new HttpError('invalid_request', `${idsKey}: more than ${MAX_VALUES} ids`);
  const filter = keys.find((key) => query.has(key) && !BESIDE_IDS.includes(key));
  if (filter !== undefined && !idsWin)
    throw new HttpError('invalid_request', `${filter}: is given beside ${idsKey}; use one of them`);
  return { ids, query };
}

/** An empty id that was joined into a path must not be taken for "all". */
function refuseEmptyId({ target, body }: RawRequest, query: Query): void {
  if (/^[^?]*\/(\?|$)/.test(target) && query.isEmpty && body.length === 0)
    throw new HttpError('invalid_request', 'The id is empty.');
}
