import { z } from 'zod';
import { parseJsonBody } from '../../../http/body.js';
import { HttpError, toHttpError } from '../../../http/errors.js';
import type { RawReply, RawRoute } from '../../../http/route.js';
import { boundedHeaders } from '../../../lib/bounded-list.js';
import { jsonText } from '../../../lib/json/json-text.js';
import { Pace } from '../../../lib/slices.js';
import type { QueueDeps } from '../deps.js';
import {
  type AddressedMessages,
  addressedMessages,
  type PublishRequest,
} from '../intake/addressed-messages.js';
import { refuseWorkflows } from '../intake/workflow-headers.js';
import type { NewMessage } from '../message/message.js';
import { batchReply } from '../schemas.js';
import { namesRun } from '../workflow/run-headers.js';
import { acceptAll, runAnswerView } from './publish-routes.js';

/** Entries that are worked on at once: enough for the store to take many with one statement. */
const AT_ONCE = 200;
const MAX_ENTRIES = 10_000;
/** After this, in ms, no further entries are begun: the reply that says which were sent must be in time. */
const MAX_MS = 6_000;

/** Headers of an entry: as many as Node takes of a request. */
const MAX_HEADERS = 2_000;
/** Their characters together: as many as a request may have by default. */
const MAX_HEADERS_SIZE = 256 * 1024;

const headerValue = z.union([z.string(), z.number(), z.boolean()]).transform(String);

const entrySchema = z.object({
  destination: z.string(),
  headers: boundedHeaders(z.record(z.string(), headerValue), MAX_HEADERS).nullish(),
  body: z.string().nullish(),
  queue: z.string().nullish(),
});

/** Bodies of calls may come as JSON values, which is how they go out. */
export const runEntrySchema = entrySchema.extend({ body: z.unknown().optional() });

type BatchEntry = z.output<typeof entrySchema>;

/** @throws HttpError 412 */
function requestOf(entry: BatchEntry, callerIp: string | null): PublishRequest {
  // without a prototype every name is a header's, __proto__ as well
  const headers: Record<string, string> = Object.create(null);
  const given = entry.headers ?? {};
  let size = 0;
  for (const name in given) {
    const value = given[name] as string;
    size += name.length + value.length;
    headers[name.toLowerCase()] = value;
  }
  if (size > MAX_HEADERS_SIZE)
    throw new HttpError(
      'limit_reached',
      `The headers of an entry have more than ${MAX_HEADERS_SIZE} characters.`,
    );
  return {
    destination: entry.destination,
    headers,
    settings: new Map(),
    body: Buffer.from(entry.body ?? ''),
    callerIp,
    ...(entry.queue ? { queueName: entry.queue } : {}),
  };
}

type Outcome = { readonly reply: unknown } | { readonly error: HttpError };

/** What an entry asks for, or why it cannot be had. */
type Addressed = AddressedMessages | { readonly error: HttpError };

async function addressEntry(entry: unknown, callerIp: string | null, deps: QueueDeps): Promise<Addressed> {
  try {
    const parsed = entrySchema.safeParse(entry);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new HttpError('invalid_request', `${issue?.path.join('.') || 'entry'}: ${issue?.message}`);
    }
    return await addressedMessages(requestOf(parsed.data, callerIp), deps);
  } catch (error) {
    return { error: toHttpError(error) };
  }
}

/** Messages of entries that are stored in one transaction although they wait for different rows. */
const TOGETHER = 25;
/** Such transactions of one batch at once. */
const TRANSACTIONS = 2;

/**
 * Entries that wait for a row while they are stored (a queue's, a flow-control key's, a deduplication id's) are stored in
 * their order, those that wait for the same one together, and with others up to a number: 100 transactions of one batch
 * kept all connections from other publishes. Each of the others is a publish of its own.
 */
function groupsOf(entries: readonly Addressed[]): { alone: number[]; together: number[][][] } {
  const shared = new Map<string, number[]>();
  const alone: number[] = [];
  const together: number[][][] = [];
  entries.forEach((entry, i) => {
    const waitsFor = 'messages' in entry ? sharedRowOf(entry.messages[0]) : undefined;
    const group = waitsFor === undefined ? undefined : shared.get(waitsFor);
    if (group !== undefined) group.push(i);
    else if (waitsFor === undefined) alone.push(i);
    else shared.set(waitsFor, [i]);
  });
  let size = TOGETHER;
  for (const group of shared.values()) {
    const messages = group.reduce((sum, i) => sum + messagesOf(entries[i]), 0);
    if (size + messages > TOGETHER) {
      together.push([]);
      size = 0;
    }
    together.at(-1)?.push(group);
    size += messages;
  }
  return { alone, together };
}

const messagesOf = (entry: Addressed | undefined) =>
  entry !== undefined && 'messages' in entry ? entry.messages.length : 0;

/** What a message has to lock while it is stored. */
function sharedRowOf(message: NewMessage | undefined): string | undefined {
  if (message === undefined) return undefined;
  if (message.queueName !== null) return `queue ${message.queueName}`;
  const { flow } = message.details;
  if (flow !== undefined) return `flow ${flow.key}`;
  return message.deduplicationKey === null ? undefined : `id ${message.deduplicationKey}`;
}

async function publishEntries(
  entries: readonly unknown[],
  callerIp: string | null,
  deps: QueueDeps,
): Promise<Outcome[]> {
  const pace = new Pace();
  const addressed: Addressed[] = [];
  for (const entry of entries) {
    addressed.push(await addressEntry(entry, callerIp, deps));
    await pace.rest();
  }
  const outcomes: Outcome[] = addressed.map((entry) => ('error' in entry ? entry : { reply: [] }));
  const publishGroups = async (groups: readonly (readonly number[])[]): Promise<void> => {
    const places = groups.flat().sort((a, b) => a - b);
    const wanted = places.flatMap((i) => {
      const entry = addressed[i];
      return entry === undefined || 'error' in entry ? [] : [entry];
    });
    if (wanted.length === 0) return;
    const answers: Outcome[] = await acceptAll(wanted, deps).catch((error: unknown) =>
      wanted.map(() => ({ error: toHttpError(error) })),
    );
    const [first] = answers;
    // what is too much for today together may not be for some
    if (groups.length > 1 && first !== undefined && 'error' in first && first.error.status === 429) {
      for (const group of groups) await publishGroups([group]);
      return;
    }
    places.forEach((place, i) => {
      outcomes[place] = answers[i] as Outcome;
    });
  };
  const { alone, together } = groupsOf(addressed);
  const publishShared = async () => {
    for (let groups = together.shift(); groups !== undefined; groups = together.shift())
      await publishGroups(groups);
  };
  await Promise.all([
    ...alone.map((i) => publishGroups([[i]])),
    ...Array.from({ length: TRANSACTIONS }, publishShared),
  ]);
  return outcomes;
}

/** Headers of the entries that are worked on at once: 4 MB with all that is made of them, several times that until it is collected. */
const HEADERS_AT_ONCE = 4_000;

/** Where the entries end that are worked on with the one at `start`. */
function endOfPart(entries: readonly unknown[], start: number): number {
  let headers = 0;
  let i = start;
  do {
    headers += headerNamesOf(entries[i++]).length;
  } while (i < entries.length && i < start + AT_ONCE && headers < HEADERS_AT_ONCE);
  return i;
}

/** The answer to entries for which there was no time: they were not sent. */
const tooLate = (): Outcome => ({
  error: new HttpError('backend_unavailable', 'Not sent: the batch took too long. Send the entry again.'),
});

export const batchRoute: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.batch',
  summary:
    'Publishes an array of messages. The reply has one element an entry, in order: what a publish of its own would answer, or {error}; the others are sent all the same.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/batch',
  request: { body: z.array(entrySchema) },
  reply: batchReply,
  errors: [400, 401, 403, 412, 413, 429, 503],
  handle: async ({ body }, { clientAddress: callerIp, signal }, deps) => {
    const entries = await entriesOf(body);
    if (entries.some((entry) => namesRun(headerNamesOf(entry))))
      return publishToRuns(entries, callerIp, deps);
    for (const entry of entries) refuseWorkflows(headerNamesOf(entry));
    const outcomes: Outcome[] = [];
    const started = performance.now();
    for (let i = 0; i < entries.length && !signal.aborted; ) {
      const some = entries.slice(i, endOfPart(entries, i));
      i += some.length;
      const inTime = performance.now() - started < MAX_MS;
      outcomes.push(...(inTime ? await publishEntries(some, callerIp, deps) : some.map(tooLate)));
    }
    const failed = outcomes.flatMap((outcome) => ('error' in outcome ? [outcome.error] : []));
    // nothing at all was taken, and not for a reason that lies in the entries
    const [first] = failed;
    if (
      first !== undefined &&
      failed.length === outcomes.length &&
      (first.status >= 500 || first.status === 429)
    )
      throw first;
    const reply = outcomes.map((o) => ('error' in o ? { error: o.error.message } : o.reply));
    return { status: 200, body: JSON.stringify(reply) };
  },
};

/**
 * A batch with messages of workflow runs is taken whole or refused whole: the SDKs read no error in an entry, and a run
 * would seem to go on.
 */
async function publishToRuns(
  entries: readonly unknown[],
  callerIp: string | null,
  { workflow }: QueueDeps,
): Promise<RawReply> {
  const refusal = (place: number) =>
    new HttpError(
      'limit_reached',
      `Entry ${place} belongs to no workflow run; a batch has messages of runs alone or none. Nothing was sent.`,
    );
  const other = entries.findIndex((entry) => !namesRun(headerNamesOf(entry)));
  if (other >= 0) throw refusal(other);
  const publishes = await runPublishesOf(entries, callerIp, refusal);
  const answers = await workflow.runs.accept(publishes);
  const reply = answers.map((answer, i) => runAnswerView(answer, publishes[i]?.destination ?? ''));
  return { status: 200, body: JSON.stringify(reply) };
}

/**
 * Entries of a batch as requests of runs.
 * @param refusal of an entry that is none
 * @throws HttpError 412
 */
export async function runPublishesOf(
  entries: readonly unknown[],
  callerIp: string | null,
  refusal: (place: number) => HttpError,
): Promise<PublishRequest[]> {
  const pace = new Pace();
  const publishes: PublishRequest[] = [];
  for (const [i, entry] of entries.entries()) {
    const { success, data } = runEntrySchema.safeParse(entry);
    if (!success) throw refusal(i);
    const { body } = data;
    const text = body == null ? '' : typeof body === 'string' ? body : await jsonText(body);
    publishes.push(requestOf({ ...data, body: text, queue: null }, callerIp));
    await pace.rest();
  }
  return publishes;
}

/** Of an entry that nobody has checked yet: those of a string or an array would be all of its places. */
function headerNamesOf(entry: unknown): string[] {
  const { headers } = (entry ?? {}) as { headers?: unknown };
  const isObject = typeof headers === 'object' && headers !== null && !Array.isArray(headers);
  return isObject ? Object.keys(headers) : [];
}

export async function entriesOf(body: Buffer): Promise<readonly unknown[]> {
  const value = await parseJsonBody(body);
  if (value === undefined) throw new HttpError('invalid_json', 'The body is not valid JSON.');
  // a lone entry counts as an array of one
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (entries.length <= MAX_ENTRIES) return entries;
  throw new HttpError('invalid_request', `A batch is an array of at most ${MAX_ENTRIES} messages.`);
}
