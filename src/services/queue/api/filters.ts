import { HttpError } from '../../../http/errors.js';
import type { Conditions } from '../store/conditions.js';
import { type Query, unixMs } from './query.js';

/** Of the URL in a column. */
export const hostOf = (url: string) => `substring(${url} from '^[A-Za-z]+://(?:[^/?#@]*@)?([^/?#]*)')`;
export const pathOf = (url: string) =>
  `coalesce(nullif(substring(${url} from '^[A-Za-z]+://[^/?#]*([^?#]*)'), ''), '/')`;

/** Conditions on the message `m`, with `$` for the parameter: an array of the values, of which one must fit. */
const MESSAGE_FIELDS: Readonly<Record<string, string>> = {
  messageId: 'm.id = any($::text[])',
  topicName: `m.details ->> 'topicName' = any($::text[])`,
  queueName: 'm.queue_name = any($::text[])',
  url: 'm.url = any($::text[])',
  host: `${hostOf('m.url')} = any($::text[])`,
  path: `${pathOf('m.url')} = any($::text[])`,
  label: `(m.details -> 'labels')::jsonb ?| $::text[]`,
  flowControlKey: 'm.flow_key = any($::text[])',
  scheduleId: `m.details ->> 'scheduleId' = any($::text[])`,
  callerIp: 'm.caller_ip = any($::text[])',
  callerIP: 'm.caller_ip = any($::text[])',
};

/** Values that may hold commas of their own. */
const WHOLE = new Set(['url', 'workflowUrl', 'path', 'flowControlKey']);

export interface FilterOptions {
  /** The SQL of the time that `fromDate` and `toDate` bound (inclusive), as Unix ms; without it they are left to the caller. */
  readonly time?: string;
  /** Fields of messages that may be asked for. */
  readonly fields: readonly string[];
  /** Further fields with their conditions. */
  readonly others?: Readonly<Record<string, string>>;
}

/** The keys that `readFilters` understands. */
export function filterKeys({ fields, others = {} }: FilterOptions): string[] {
  return [...fields, ...Object.keys(others), 'fromDate', 'toDate'];
}

/**
 * The filters of a query as SQL: several values of one are alternatives, several filters must all hold.
 * @param before parameters that the statement has before these
 */
export function readFilters(query: Query, options: FilterOptions, before: number): Conditions {
  const values: unknown[] = [];
  const conditions: string[] = [];
  const add = (condition: string, value: unknown) => {
    values.push(value);
    conditions.push(condition.replaceAll('$', `$${before + values.length}`));
  };
  for (const field of [...options.fields, ...Object.keys(options.others ?? {})]) {
    const wanted = WHOLE.has(field) ? query.whole(field) : query.list(field);
    const condition = options.others?.[field] ?? MESSAGE_FIELDS[field];
    if (wanted === undefined || condition === undefined) continue;
    // `label=` is no wish for everything
    if (wanted.length === 0) throw new HttpError('invalid_request', `${field}: has no value`);
    add(condition, wanted);
  }
  if (options.time === undefined) return conditionsOf(conditions, values);
  const [from, to] = [readTime(query, 'fromDate'), readTime(query, 'toDate')];
  if (from !== undefined) add(`${options.time} >= $::float8`, from);
  if (to !== undefined) add(`${options.time} < $::float8 + 1`, to);
  return conditionsOf(conditions, values);
}

function conditionsOf(conditions: readonly string[], values: unknown[]): Conditions {
  return { sql: conditions.length === 0 ? 'true' : conditions.join(' and '), values };
}

/** Unix time in ms. @throws HttpError 400 */
export function readTime(query: Query, key: 'fromDate' | 'toDate'): number | undefined {
  const text = query.first(key);
  return text === undefined ? undefined : unixMs(key, text);
}
