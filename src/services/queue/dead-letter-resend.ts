import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../http/errors.js';
import { unavailable } from './errors.js';
import type { Conditions } from './filters.js';
import { takeInWith } from './intake.js';
import type { QueueDeps } from './queue-deps.js';
import { resentMessage } from './resent-message.js';

/** Of RabbitMQ's confirm, in ms. */
const CONFIRM_MS = 1_300;

/** After this, in ms, no further dead letters are begun: the reply that names the new messages must be in time. */
const MAX_RESEND_MS = 5_000;

export interface Resent {
  /** Of the new messages. */
  readonly ids: readonly string[];
  /** Whether none was left because of its size. */
  readonly isWhole: boolean;
}

/**
 * Sends dead letters again, not more at once than Postgres takes in time: entries out, new messages in, in one transaction.
 * Once that is committed the messages are accepted; a token that RabbitMQ does not confirm then comes from the sweeper.
 * @param conditions with parameters from $2 on
 */
export async function resendDeadLetters(
  conditions: Conditions,
  limit: number,
  headers: IncomingHttpHeaders,
  { accept, config, guard, now, deadLetters, usage, log }: QueueDeps,
): Promise<Resent> {
  const reason = accept.publisher.unavailable;
  if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
  const environment = { limits: config, guard, now: now() };
  const { messages, intake, isWhole } = await accept.database
    .transaction(async (connection) => {
      const dead = await deadLetters.take(connection, conditions, limit);
      const messages = dead.messages.map((message) =>
        resentMessage(message, headers, new Map(), environment),
      );
      const intake = await takeInWith(connection, messages, accept);
      return { messages, intake, isWhole: dead.isWhole };
    })
    .catch((error: unknown) => {
      throw unavailable(error);
    });
  const { publisher, onAccepted, turns } = accept;
  turns.begin(intake.waiting);
  try {
    await Promise.all(intake.tokens.map((token) => publisher.publish(token, token.delayMs, CONFIRM_MS)));
  } catch (err) {
    log.warn({ err, messages: messages.length }, 'queue: dead letters wait for the sweeper');
  }
  onAccepted(messages.length);
  await usage.charge(messages.length);
  return { ids: messages.map(({ id }) => id), isWhole };
}

/** As many as there is time for. What fails after some were sent is told by the cursor: the reply has to name those. */
export async function resendInTime(
  conditions: Conditions,
  most: number,
  headers: IncomingHttpHeaders,
  deps: QueueDeps,
): Promise<Resent> {
  const started = performance.now();
  const ids: string[] = [];
  while (ids.length < most && performance.now() - started < MAX_RESEND_MS) {
    // those that were sent are gone, so the same conditions name the rest
    const resent = await resendDeadLetters(conditions, most - ids.length, headers, deps).catch(
      (error: unknown) => {
        if (ids.length === 0) throw error;
        deps.log.warn({ err: error, sent: ids.length }, 'queue: not all dead letters were sent again');
        return undefined;
      },
    );
    if (resent === undefined) return { ids, isWhole: false };
    ids.push(...resent.ids);
    if (resent.isWhole) return { ids, isWhole: true };
  }
  return { ids, isWhole: ids.length === most };
}
