import { isDeepStrictEqual } from 'node:util';
import { RestClient } from './rest-client.mjs';

/** Records of a page: a hundred of 1,536 dimensions are 3 MB of JSON. */
const page = 100;
/** Components are kept as float32, or as float16. */
const slack = 1e-3;

/**
 * Copies every namespace, page by page of `/range`, whose cursor is saved: what is moved twice comes to the same.
 * @param {import('./rest-client.mjs').Place} from
 * @param {import('./rest-client.mjs').Place} to
 * @param {import('./move-state.mjs').MoveState} state
 * @param {(line: string) => void} print
 */
export async function importVector(from, to, state, print) {
  const [source, target] = [new RestClient(from), new RestClient(to)];
  await demandSameKind(source, target);
  const { result: namespaces } = await source.ask('GET', '/list-namespaces');
  const { at } = state.progress;
  const first = at === undefined ? 0 : namespaces.indexOf(at.namespace);
  if (first < 0)
    throw new Error(`the namespace ${at.namespace} is gone: delete ${state.file} and begin anew`);
  for (const namespace of namespaces.slice(first)) {
    let cursor = at?.namespace === namespace ? at.cursor : '0';
    while (cursor !== '') {
      const { next, count, failed } = await movePage(source, target, namespace, cursor);
      const { moved, failed: before } = state.progress;
      const done = moved + count - failed.length;
      state.save({ at: { namespace, cursor: next }, moved: done, failed: [...before, ...failed] });
      print(`${state.progress.moved} records moved and verified`);
      cursor = next;
    }
  }
}

/** @throws {Error} where vectors of one cannot be those of the other */
async function demandSameKind(source, target) {
  const [{ result: one }, { result: other }] = await Promise.all(
    [source, target].map((index) => index.ask('GET', '/info')),
  );
  for (const name of ['dimension', 'similarityFunction'])
    if (one[name] !== other[name])
      throw new Error(`${name} is ${one[name]} in ${source.url} and ${other[name]} in ${target.url}`);
}

const below = (path, namespace) => (namespace === '' ? path : `${path}/${encodeURIComponent(namespace)}`);

async function movePage(source, target, namespace, cursor) {
  const wanted = { includeVectors: true, includeMetadata: true, includeData: true };
  const { result } = await source.ask('POST', below('/range', namespace), { cursor, limit: page, ...wanted });
  const { vectors: records, nextCursor: next } = result;
  if (records.length === 0) return { next, count: 0, failed: [] };
  await target.ask('POST', below('/upsert', namespace), records);
  const ids = records.map(({ id }) => id);
  const { result: there } = await target.ask('POST', below('/fetch', namespace), { ids, ...wanted });
  const failed = records.flatMap((record, i) =>
    isSame(record, there[i]) ? [] : [`${namespace}/${record.id}: is not the same there`],
  );
  return { next, count: records.length, failed };
}

function isSame(record, there) {
  if (there === null || there === undefined) return false;
  const { vector, sparseVector } = record;
  return (
    isNear(vector, there.vector) &&
    isDeepStrictEqual(sparseVector?.indices, there.sparseVector?.indices) &&
    isNear(sparseVector?.values, there.sparseVector?.values) &&
    isDeepStrictEqual(record.metadata ?? null, there.metadata ?? null) &&
    (record.data ?? null) === (there.data ?? null)
  );
}

function isNear(wanted, got) {
  if (wanted === undefined || got === undefined) return wanted === got;
  return (
    wanted.length === got.length &&
    wanted.every((one, i) => Math.abs(one - got[i]) <= slack * Math.max(1, Math.abs(one)))
  );
}
