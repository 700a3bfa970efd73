import type { Database, Queryable, Transactions } from '../../../lib/postgres/postgres.js';
import { isRefusal, isTooMuch } from '../errors.js';
import { type Conclusion, type FailingMessage, outcomesJson, writtenBytes } from '../message/conclusion.js';
import type { AttemptResult } from '../message/decide.js';
import { type ClaimedMessage, type NewMessage, type Ticket, writtenSize } from '../message/message.js';
import { Batcher } from './batcher.js';
import { type MessageRow, messageOf, newMessageParameters } from './message-row.js';
import { inPieces } from './pieces.js';
import { queueStatements } from './statements.js';

/** What became of a claim. */
export type Claim =
  | { readonly kind: 'claimed'; readonly message: ClaimedMessage }
  /** Another attempt of the message is due instead, after `waitMs`. */
  | { readonly kind: 'stale'; readonly attempt: number; readonly waitMs: number }
  /** The attempt is not due yet, or somebody works on it: worth asking again after `waitMs`. */
  | { readonly kind: 'busy'; readonly waitMs: number }
  /** It is due, but its flow-control key has not let it in. */
  | { readonly kind: 'keyed'; readonly key: string }
  /** Its retries are used up, and its dead letter is still to be written. */
  | { readonly kind: 'failing' }
  /** Finished, cancelled, unknown, or held until a ticket is made for it. */
  | { readonly kind: 'over' };

/** What the store says of a message that could not be claimed. */
interface Unclaimed {
  attempt: number;
  finished: boolean;
  failing: boolean;
  held: boolean;
  free: boolean;
  flow_key: string | null;
  wait_ms: number;
}

/** A claim that is given back, for a new one after so many ms. */
export type Postponement = readonly [message: ClaimedMessage, delayMs: number];

/** Two runs at once keep Postgres busy while Node decodes. */
const PARALLEL_BATCHES = 2;
const MAX_BATCH = 200;
/** No statement brings or takes more than about so many bytes of bodies. */
const BATCH_BYTES = 16 * 1024 * 1024;
/** The same for statements that write messages: with 16 MiB they took longer than a statement may on two busy cores. */
const WRITTEN_BYTES = 4 * 1024 * 1024;

export interface StoreOptions {
  readonly database: Database;
  readonly schema: string;
  /** How long a claim holds unless renewed, in ms. */
  readonly leaseMs: number;
  /** How long after its due time a message without a claim counts as lost by RabbitMQ, in ms. */
  readonly graceMs: number;
  /** Largest body, in bytes. */
  readonly maxMessageSize: number;
  /** What the log keeps of a response's body, and of its headers, in bytes. */
  readonly maxLoggedResponse: number;
}

interface Insert {
  readonly message: NewMessage;
  readonly onStoring: () => void;
}

/** The memory of the queue: messages, who works on them, what became of them. */
export class MessageStore {
  private readonly sql: ReturnType<typeof queueStatements>;
  private readonly database: Database;
  /** For deliveries: a claim or an outcome whose answer nobody awaits any more leaves its message alone until the lease ends. */
  private readonly patient: Transactions;
  private readonly inserts: Batcher<Insert, undefined>;
  private readonly claims: Batcher<Ticket, ClaimedMessage | undefined>;
  private readonly conclusions: Batcher<Conclusion, boolean>;
  private readonly postponements: Batcher<Postponement, boolean>;

  constructor(private readonly options: StoreOptions) {
    this.sql = queueStatements(options.schema);
    this.database = options.database;
    this.patient = options.database.patient;
    const many = { size: MAX_BATCH, parallel: PARALLEL_BATCHES };
    const byBytes = {
      ...many,
      weight: WRITTEN_BYTES,
      tellApart: isRefusal,
    };
    this.inserts = new Batcher({
      ...byBytes,
      run: async (inserts) => {
        for (const { onStoring } of inserts) onStoring();
        const messages = inserts.map(({ message }) => message);
        await this.insertWith(this.database, messages);
        return inserts.map(() => undefined);
      },
      weigh: ({ message }) => writtenSize(message),
    });
    this.claims = new Batcher({
      run: (tickets) => this.claimAll(tickets),
      size: Math.max(1, Math.min(MAX_BATCH, Math.floor(BATCH_BYTES / options.maxMessageSize))),
      parallel: PARALLEL_BATCHES,
      // callbacks are larger than messages may be
      tellApart: isTooMuch,
    });
    this.postponements = new Batcher({ ...many, run: (all) => this.postponeAll(all) });
    this.conclusions = new Batcher({
      ...byBytes,
      tellApart: isTooMuch,
      run: (conclusions) => this.concludeAll(conclusions),
      weigh: (conclusion) => writtenBytes(conclusion, options.maxLoggedResponse),
    });
  }

  /**
   * Stores a message that needs no lock: no key, no turn to wait for.
   * @param onStoring called when the statement is sent, and again should it be repeated
   */
  async insert(message: NewMessage, onStoring: () => void): Promise<void> {
    await this.inserts.add({ message, onStoring });
  }

  /** Stores messages on a connection of the caller's, who has the locks that they need. */
  async insertWith(connection: Queryable, messages: readonly NewMessage[]): Promise<void> {
    for (const piece of inPieces(messages, writtenSize, WRITTEN_BYTES)) {
      const { records, bodies } = newMessageParameters(piece);
      await this.run(connection, 'insert', [records, bodies, this.options.graceMs]);
    }
  }

  /** @returns whose the key is: the given message's, or that of an earlier one */
  async deduplicate(connection: Queryable, key: string, id: string, windowMs: number): Promise<string> {
    const result = await this.run<{ message_id: string }>(connection, 'deduplicate', [key, id, windowMs]);
    return result.rows[0]?.message_id ?? id;
  }

  async claim(ticket: Ticket): Promise<Claim> {
    const message = await this.claims.add(ticket);
    return message === undefined ? this.unclaimed(ticket) : { kind: 'claimed', message };
  }

  async renew(held: readonly ClaimedMessage[]): Promise<void> {
    const ids = held.map(({ id }) => id);
    await this.run(this.patient, 'renew', [ids, held.map(({ claims }) => claims), this.options.leaseMs]);
  }

  /** Gives a claim back without an outcome. */
  async release({ id, claims }: ClaimedMessage): Promise<void> {
    await this.run(this.patient, 'release', [id, claims]);
  }

  /** Gives a claim back as if it had not been made, for a new one after `delayMs`. @returns false when it was lost */
  postpone(message: ClaimedMessage, delayMs: number): Promise<boolean> {
    return this.postponements.add([message, delayMs]);
  }

  /**
   * Writes an outcome, all of it or nothing.
   * @returns false when somebody else has claimed the message meanwhile, or it was cancelled: then nothing was written
   */
  conclude(conclusion: Conclusion): Promise<boolean> {
    return this.conclusions.add(conclusion);
  }

  async failing(id: string): Promise<FailingMessage | undefined> {
    type Row = MessageRow & {
      failure_error: string | null;
      failure_status: number;
      failure_headers: Record<string, string[]>;
      failure_body: Buffer;
    };
    const [row] = (await this.run<Row>(this.patient, 'failing', [id])).rows;
    if (row === undefined) return undefined;
    const {
      failure_error: reason,
      failure_status: status,
      failure_headers: headers,
      failure_body: body,
    } = row;
    // a response that was refused has its reason as body already
    const result: AttemptResult =
      reason === null || status > 0
        ? { kind: 'response', status, headers, body }
        : { kind: 'failure', reason };
    return { message: messageOf(row), result };
  }

  /** Writes a dead letter and its failure callback. @returns false when that was done before */
  async deadLetter(
    id: string,
    dlqId: string,
    callbacks: readonly NewMessage[],
    connection: Queryable = this.patient,
  ): Promise<boolean> {
    const { records, bodies } = newMessageParameters(callbacks);
    const values = [id, dlqId, records, this.options.graceMs, bodies];
    return (await this.run(connection, 'deadLetter', values)).rowCount > 0;
  }

  /** @returns the messages, all of them, or none when they can no longer be refused */
  async refuse(ids: readonly string[]): Promise<{ id: string; queue_name: string | null }[]> {
    return (await this.run<{ id: string; queue_name: string | null }>(this.database, 'refuse', [ids])).rows;
  }

  private async unclaimed(ticket: Ticket): Promise<Claim> {
    const [now] = (await this.run<Unclaimed>(this.patient, 'unclaimed', [ticket.id])).rows;
    if (now === undefined || now.finished || now.held) return { kind: 'over' };
    if (now.failing) return { kind: 'failing' };
    if (now.attempt !== ticket.attempt) return { kind: 'stale', attempt: now.attempt, waitMs: now.wait_ms };
    if (now.flow_key !== null && now.free && now.wait_ms === 0) return { kind: 'keyed', key: now.flow_key };
    return { kind: 'busy', waitMs: now.wait_ms };
  }

  private async claimAll(tickets: readonly Ticket[]): Promise<(ClaimedMessage | undefined)[]> {
    const ids = tickets.map(({ id }) => id);
    const attempts = tickets.map(({ attempt }) => attempt);
    const claimed = await this.run<MessageRow>(this.patient, 'claim', [ids, attempts, this.options.leaseMs]);
    const rows = new Map(claimed.rows.map((row) => [row.id, row]));
    return tickets.map(({ id, attempt }) => {
      const row = rows.get(id);
      if (row?.attempt !== attempt) return undefined;
      // of two equal tickets only one has the claim
      rows.delete(id);
      return messageOf(row);
    });
  }

  private async postponeAll(all: readonly Postponement[]): Promise<boolean[]> {
    const ids = all.map(([{ id }]) => id);
    const claims = all.map(([{ claims }]) => claims);
    const values = [ids, claims, all.map(([, delayMs]) => delayMs), this.options.graceMs];
    const { rows } = await this.run<{ id: string }>(this.patient, 'postpone', values);
    return ids.map((id) => rows.some((row) => row.id === id));
  }

  private async concludeAll(conclusions: readonly Conclusion[]): Promise<boolean[]> {
    const { records, bodies } = newMessageParameters(
      conclusions.flatMap(({ callbacks }) => callbacks),
      conclusions.flatMap(({ message, callbacks }) => callbacks.map(() => message.id)),
    );
    const outcomes = outcomesJson(conclusions, this.options.maxLoggedResponse);
    const values = [outcomes, records, this.options.graceMs, bodies];
    const written = await this.run<{ id: string }>(this.patient, 'conclude', values);
    const done = new Set(written.rows.map(({ id }) => id));
    return conclusions.map(({ message }) => done.has(message.id));
  }

  private run<Row>(
    connection: Queryable,
    statement: keyof ReturnType<typeof queueStatements>,
    values: unknown[],
  ) {
    return connection.query<Row>(this.sql[statement], values, `queue_${statement}`);
  }
}
