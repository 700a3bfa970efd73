import { HttpError } from '../../../http/errors.js';
import type { Span } from '../../../lib/traces/span.js';
import type { Tracer } from '../../../lib/traces/tracer.js';
import { unavailable } from '../errors.js';
import type { DueTicket, NewMessage } from '../message/message.js';
import type { HeldMessages } from '../order/held-messages.js';
import { CONFIRM_MS, type TicketPublisher } from '../rabbitmq/publisher.js';
import { type IntakeTools, type Stored, takeIn } from './intake.js';
import type { RefusedMessages } from './refused-messages.js';

/**
 * From this delay on, in ms, a ticket is published while its message is being stored. It comes when nobody waits for an
 * answer any more (a request has 10 s), so of a message that was accepted it finds the row; without one it is harmless.
 */
const EARLY_TICKET_MS = 15_000;

export interface AcceptTools extends IntakeTools {
  readonly publisher: TicketPublisher;
  readonly refusedMessages: RefusedMessages;
  readonly heldMessages: HeldMessages;
  /** Told of each message that was accepted and was none before. */
  readonly onAccepted: (count: number) => void;
  /** Where traces are wanted. */
  readonly tracer: Tracer | undefined;
}

/**
 * Stores the messages of one publish and hands them to RabbitMQ. Resolves when the rows are committed and the tickets
 * confirmed; messages that wait for their turn or repeat an earlier one need no ticket of their own.
 * @throws HttpError 503 when that cannot be had; the messages are then cancelled, and the sender may publish them again
 */
export async function acceptMessages(
  published: readonly NewMessage[],
  tools: AcceptTools,
): Promise<readonly Stored[]> {
  if (published.length === 0) return [];
  const { publisher, refusedMessages, heldMessages, tracer } = tools;
  const span = tracer?.current.getStore();
  const messages = span === undefined ? published : published.map((message) => withTrace(message, span));
  const reason = publisher.unavailable;
  if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
  const ids = messages.map(({ id }) => id);
  let early: Promise<void> | undefined;
  const onStoring = (ticket: DueTicket) => {
    if (ticket.delayMs < EARLY_TICKET_MS || early !== undefined) return;
    early = publisher.publish(ticket, ticket.delayMs, CONFIRM_MS.whileClientWaits);
    // it is awaited only when the message was stored
    early.catch(() => undefined);
  };
  const { stored, tickets, waiting } = await takeIn(messages, tools, onStoring).catch((error: unknown) => {
    refusedMessages.add(ids);
    throw unavailable(error);
  });
  heldMessages.begin(waiting);
  try {
    const publishAll = async () => {
      await Promise.all(
        tickets.map((ticket) => publisher.publish(ticket, ticket.delayMs, CONFIRM_MS.whileClientWaits)),
      );
    };
    if (early !== undefined) await early;
    else if (tracer === undefined) await publishAll();
    else await tracer.within('rabbitmq publish', { 'messaging.system': 'rabbitmq' }, publishAll);
  } catch (cause) {
    if (!(await areBeingDelivered(ids, tools)))
      throw new HttpError('backend_unavailable', 'RabbitMQ did not take the message.', { cause });
  }
  tools.onAccepted(stored.filter(({ deduplicated }) => !deduplicated).length);
  return stored;
}

/** Its deliveries go on with the trace of the request; a trace that the sender forwards by itself stays. */
function withTrace(message: NewMessage, { traceparent }: Span): NewMessage {
  const isGiven = Object.keys(message.headers).some((name) => /^traceparent$/i.test(name));
  return isGiven ? message : { ...message, headers: { ...message.headers, Traceparent: traceparent } };
}

/** A ticket without confirm may have arrived all the same, and then the message is accepted: better than delivered and refused. */
async function areBeingDelivered(
  ids: readonly string[],
  { store, refusedMessages }: AcceptTools,
): Promise<boolean> {
  try {
    return (await store.refuse(ids)).length === 0;
  } catch {
    refusedMessages.add(ids);
    return false;
  }
}
