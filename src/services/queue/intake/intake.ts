import type { Database, Queryable } from '../../../lib/postgres/postgres.js';
import type { DueTicket, NewMessage } from '../message/message.js';
import type { FlowControls } from '../order/flow-controls.js';
import type { Waiting } from '../order/held-messages.js';
import type { OrderedQueues } from '../order/ordered-queues.js';
import type { MessageStore } from '../store/store.js';
import type { IntakeConnections } from './intake-connections.js';

/** A message that is stored, or the earlier one that it repeats. */
export interface Stored {
  readonly messageId: string;
  readonly deduplicated: boolean;
}

export interface Intake {
  readonly stored: readonly Stored[];
  /** To be published now; a message that is held has none. */
  readonly tickets: readonly DueTicket[];
  /** What the others wait for, to be handed to `HeldMessages` after the commit. */
  readonly waiting: Waiting;
}

const NOTHING: Waiting = { queues: [], flows: [] };

export interface IntakeTools {
  readonly database: Database;
  readonly intakeConnections: IntakeConnections;
  readonly store: MessageStore;
  readonly queues: OrderedQueues;
  readonly flows: FlowControls;
  /** How long a deduplication key holds, in ms. */
  readonly deduplicationMs: number;
}

/**
 * Stores the messages of one publish, all or none: those that ask for nothing special many at a time, the others in a
 * transaction of their own.
 * @param onStoring told the ticket of one of the former when its statement is sent: all of a statement in one tick
 */
export async function takeIn(
  messages: readonly NewMessage[],
  tools: IntakeTools,
  onStoring: (ticket: DueTicket) => void,
): Promise<Intake> {
  const [only] = messages;
  if (messages.length === 1 && only !== undefined && isPlain(only)) {
    tools.intakeConnections.lightCame();
    const ticket = { id: only.id, attempt: 0, delayMs: only.delayMs };
    await tools.store.insert(only, () => onStoring(ticket));
    const stored = [{ messageId: only.id, deduplicated: false }];
    return { stored, tickets: [ticket], waiting: NOTHING };
  }
  return tools.intakeConnections.transaction(messages.length, (connection) =>
    takeInWith(connection, messages, tools),
  );
}

/** Stores messages on the connection of a transaction. The tickets are to be published after its commit. */
export async function takeInWith(
  connection: Queryable,
  messages: readonly NewMessage[],
  tools: IntakeTools,
): Promise<Intake> {
  const waiting = await prepare(connection, messages, tools);
  const winners = await deduplicate(connection, messages, tools);
  const fresh = messages.filter((message) => (winners.get(message) ?? message.id) === message.id);
  if (fresh.length > 0) await tools.store.insertWith(connection, fresh);
  const stored = messages.map((message) => {
    const messageId = winners.get(message) ?? message.id;
    return { messageId, deduplicated: messageId !== message.id };
  });
  // an earlier message's ticket may still be unconfirmed: one more makes this answer true
  const repeated = stored.filter(({ deduplicated }) => deduplicated);
  const again = repeated.map(({ messageId }) => ({ id: messageId, attempt: 0, delayMs: 0 }));
  return { stored, tickets: [...ticketsOf(fresh), ...again], waiting };
}

/** Of messages that were stored those that are not held, as `insertedMessages` decides it. */
export function ticketsOf(messages: readonly NewMessage[]): DueTicket[] {
  const own = messages.filter(
    ({ queueName, delayMs, details }) => queueName === null && (details.flow === undefined || delayMs > 0),
  );
  return own.map(({ id, delayMs }) => ({ id, attempt: 0, delayMs }));
}

/** Sees to it that the queues and keys of the messages are there. */
export async function prepare(
  connection: Queryable,
  messages: readonly NewMessage[],
  { queues, flows }: Pick<IntakeTools, 'queues' | 'flows'>,
): Promise<Waiting> {
  const names = [...new Set(messages.flatMap(({ queueName }) => queueName ?? []))].sort();
  for (const name of names) await queues.keep(connection, name);
  const controls = new Map(
    messages.flatMap(({ details: { flow } }) => (flow ? [[flow.key, flow] as const] : [])),
  );
  const limits = [...controls.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const flow of limits) await flows.remember(connection, flow);
  return { queues: names, flows: limits };
}

/** Whose each message's key is. Keys are asked for in one order, so that two publishes do not wait for each other. */
async function deduplicate(
  connection: Queryable,
  messages: readonly NewMessage[],
  { store, deduplicationMs }: IntakeTools,
): Promise<Map<NewMessage, string>> {
  const winners = new Map<NewMessage, string>();
  const keyed = messages.flatMap((message) =>
    message.deduplicationKey === null ? [] : [{ message, key: message.deduplicationKey }],
  );
  keyed.sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const { message, key } of keyed)
    winners.set(message, await store.deduplicate(connection, key, message.id, deduplicationMs));
  return winners;
}

function isPlain({ queueName, deduplicationKey, details }: NewMessage): boolean {
  return queueName === null && deduplicationKey === null && details.flow === undefined;
}
