import { z } from 'zod';
import { HttpError, toHttpError } from '../../http/errors.js';
import type { RawRoute } from '../../http/route.js';
import { addressedMessages, type PublishRequest } from './addressed-messages.js';
import { accept } from './publish-routes.js';
import type { QueueDeps } from './queue-deps.js';
import { batchReply } from './reply-schemas.js';

/** Entries that are worked on at once: enough for the store to take many with one statement. */
const AT_ONCE = 200;
const MAX_ENTRIES = 10_000;

const headerValue = z.union([z.string(), z.number(), z.boolean()]).transform(String);

const entrySchema = z.object({
  destination: z.string(),
  headers: z.record(z.string(), headerValue).nullish(),
  body: z.string().nullish(),
  queue: z.string().nullish(),
});

const batchSchema = z.array(z.unknown()).max(MAX_ENTRIES);

type BatchEntry = z.output<typeof entrySchema>;

function requestOf(entry: BatchEntry, callerIp: string | null): PublishRequest {
  const headers = Object.fromEntries(
    Object.entries(entry.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
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

async function publishEntry(entry: unknown, callerIp: string | null, deps: QueueDeps): Promise<Outcome> {
  try {
    const parsed = entrySchema.safeParse(entry);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new HttpError('invalid_request', `${issue?.path.join('.') || 'entry'}: ${issue?.message}`);
    }
    const addressed = await addressedMessages(requestOf(parsed.data, callerIp), deps);
    return { reply: (await accept(addressed, deps)).reply };
  } catch (error) {
    return { error: toHttpError(error) };
  }
}

export const batchRoute: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.batch',
  summary:
    'Publishes an array of messages. The reply has one element an entry, in order: what a publish of its own would answer, or {error}; the others are sent all the same.',
  methods: ['POST'],
  path: '/v2/batch',
  request: { body: z.array(entrySchema) },
  reply: batchReply,
  errors: [400, 401, 403, 413, 429, 503],
  handle: async ({ body }, { remoteAddress, signal }, deps) => {
    const entries = entriesOf(body);
    const callerIp = remoteAddress?.replace(/^::ffff:/, '') ?? null;
    const outcomes: Outcome[] = [];
    const ordered = entries.some((entry) => (entry as { queue?: unknown } | null)?.queue);
    // entries of one queue must be stored in their order
    const step = ordered ? 1 : AT_ONCE;
    for (let i = 0; i < entries.length && !signal.aborted; i += step) {
      const some = entries.slice(i, i + step);
      outcomes.push(...(await Promise.all(some.map((entry) => publishEntry(entry, callerIp, deps)))));
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

function entriesOf(body: Buffer): unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new HttpError('invalid_json', 'The body is not valid JSON.', { cause });
  }
  // a lone entry counts as an array of one
  const parsed = batchSchema.safeParse(Array.isArray(value) ? value : [value]);
  if (parsed.success) return parsed.data;
  throw new HttpError('invalid_request', `A batch is an array of at most ${MAX_ENTRIES} messages.`);
}
