import { HttpError } from '../../../http/errors.js';
import type { RawStream } from '../../../http/raw-stream.js';
import type { RawRoute } from '../../../http/route.js';
import type { KvDeps } from '../deps.js';
import type { Denials } from '../redis/denials.js';
import { HEARTBEAT } from '../streams/event-text.js';
import { type StreamKind, type Topic, topicKey } from '../streams/topic.js';
import { RefusedByRedis } from '../streams/wanted-topic.js';
import { singleAnswer } from './answer-format.js';
import { segmentsOfPath } from './path-arguments.js';

type Handle = RawRoute<KvDeps>['handle'];

/** Channels or patterns of one stream. */
const MOST_TOPICS = 1_000;

/** Messages of the channels in the path. */
export const handleSubscribe: Handle = streamOf('subscribe');
/** Messages of channels that match the patterns in the path. */
export const handlePsubscribe: Handle = streamOf('psubscribe');
/** Every command that Redis runs. */
export const handleMonitor: Handle = streamOf('monitor');

/**
 * Body and query are not looked at: clients send `[]`, and a `?` in a name that was not percent-encoded begins one.
 * Whether to stream is decided by the path, not by `Accept`.
 */
function streamOf(kind: StreamKind): Handle {
  return async ({ target }, context, { client, quota, streamHeartbeatMs, nextSyncToken }) => {
    const topics = topicsOf(kind, target);
    refuse(kind, topics.length, context.principal.access, client.options.denials);
    if (!quota.grantAll(topics.length)) throw quota.exceeded();
    const stream = client.streams.take(kind);
    context.onOver(() => stream.close());
    try {
      await client.streams.begin(stream, topics, context.principal);
    } catch (error) {
      if (error instanceof RefusedByRedis) return singleAnswer(error.reply, 'utf8');
      throw error;
    }
    return {
      status: 200,
      contentType: 'text/event-stream',
      headers: { 'Upstash-Sync-Token': nextSyncToken() },
      heartbeat: { everyMs: streamHeartbeatMs, text: HEARTBEAT },
      open: (sink) => stream.attach(sink),
    } satisfies RawStream;
  };
}

/** Those in what follows the endpoint's own path, each once. @throws HttpError `invalid_request` */
function topicsOf(kind: StreamKind, target: string): Topic[] {
  if (kind === 'monitor') return [{ kind, name: '' }];
  const names = segmentsOfPath(target.split('?', 1)[0] as string);
  return [...new Map(names.map((name) => [topicKey(kind, name), { kind, name }])).values()];
}

/** @throws HttpError `invalid_request` */
function refuse(kind: StreamKind, count: number, access: 'full' | 'read', denied: Denials): void {
  const text = refusalOf(kind, count, access, denied);
  if (text !== undefined) throw new HttpError('invalid_request', text);
}

function refusalOf(
  kind: StreamKind,
  count: number,
  access: 'full' | 'read',
  { commands }: Denials,
): string | undefined {
  const name = kind.toUpperCase();
  const reason = commands.get(name);
  if (reason !== undefined) return `ERR Command '${name}' is not available over HTTP: ${reason}`;
  if (count === 0) return `ERR wrong number of arguments for '${kind}' command`;
  if (count > MOST_TOPICS) return `ERR more than ${MOST_TOPICS} names in one stream`;
  // it shows everybody's values
  if (kind === 'monitor' && access === 'read')
    return `NOPERM this user has no permissions to run the '${kind}' command`;
  return undefined;
}
