import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../http/errors.js';
import { unavailable } from './errors.js';
import type { Conditions } from './filters.js';
import { takeInWith } from './intake.js';
import type { QueueDeps } from './queue-deps.js';
import { resentMessage } from './resent-message.js';

/** Of RabbitMQ's confirm, in ms. */
const CONFIRM_MS = 1_300;

/**
 * Sends dead letters again: entries out, new messages in, in one transaction. Once that is committed the messages are
 * accepted; a token that RabbitMQ does not confirm then comes from the sweeper.
 * @param conditions with parameters from $2 on
 * @returns the ids of the new messages
 */
export async function resendDeadLetters(
  conditions: Conditions,
  limit: number,
  headers: IncomingHttpHeaders,
  { accept, config, guard, now, deadLetters, usage, log }: QueueDeps,
): Promise<string[]> {
  const reason = accept.publisher.unavailable;
  if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
  const environment = { limits: config, guard, now: now() };
  const { messages, intake } = await accept.database
    .transaction(async (connection) => {
      const dead = await deadLetters.take(connection, conditions, limit);
      const messages = dead.map((message) => resentMessage(message, headers, new Map(), environment));
      return { messages, intake: await takeInWith(connection, messages, accept) };
    })
    .catch((error: unknown) => {
      throw unavailable(error);
    });
  const { publisher, onAccepted } = accept;
  try {
    await Promise.all(intake.tokens.map((token) => publisher.publish(token, token.delayMs, CONFIRM_MS)));
  } catch (err) {
    log.warn({ err, messages: messages.length }, 'queue: dead letters wait for the sweeper');
  }
  onAccepted(messages.length);
  await usage.charge(messages.length);
  return messages.map(({ id }) => id);
}
