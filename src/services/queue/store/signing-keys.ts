import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../../../lib/postgres/postgres.js';
import { tableOf } from './statements.js';

export interface KeyPair {
  /** Signs. */
  readonly current: string;
  /** Will sign after the next rotation. */
  readonly next: string;
}

/**
 * The signing keys: those of the configuration until they are rotated; then Postgres has them for all gateways, until
 * the configuration names other ones.
 */
export class SigningKeys {
  private keys: KeyPair;
  private readonly table: string;
  /** Tells rotated keys of this configuration from those of an earlier one. */
  private readonly configured: string;

  constructor(
    private readonly database: Database,
    schema: string,
    private readonly configuration: KeyPair,
  ) {
    this.keys = configuration;
    this.table = tableOf(schema, 'signing_keys');
    const { current, next } = configuration;
    this.configured = createHash('sha256').update(`${current}\n${next}`).digest('hex');
  }

  get current(): string {
    return this.keys.current;
  }

  get next(): string {
    return this.keys.next;
  }

  /** Learns of a rotation by another gateway: until then deliveries are signed with a key that receivers still accept. */
  async refresh(): Promise<KeyPair> {
    const { rows } = await this.database.query<KeyPair>(
      `select current, next from ${this.table} where configured = $1`,
      [this.configured],
      'queue_keys',
    );
    this.keys = rows[0] ?? this.configuration;
    return this.keys;
  }

  /** The next key becomes the current one, and a new one the next. */
  async rotate(): Promise<KeyPair> {
    const fresh = `sig_${randomBytes(24).toString('base64url')}`;
    const { rows } = await this.database.query<KeyPair>(
      `insert into ${this.table} as k (current, next, configured) values ($1, $2, $3)
      on conflict (id) do update set
        current = case when k.configured = $3 then k.next else $1 end, next = $2, configured = $3
      returning current, next`,
      [this.configuration.next, fresh, this.configured],
    );
    this.keys = rows[0] as KeyPair;
    return this.keys;
  }
}
