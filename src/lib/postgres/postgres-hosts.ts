import type pg from 'pg';
import type { PostgresAddress, SessionKind } from './postgres-address.js';

interface Place {
  readonly host: string;
  readonly port: number;
}

/** None of the hosts is what is wanted. Counts as unreachable. */
class NoSuchHost extends Error {
  readonly code = 'EHOSTUNREACH';
}

/**
 * Knows which of several hosts is the one to connect to. All are asked at once, when it is not known (yet, or any more), so a
 * host that is away or silent holds nobody up.
 */
export class PostgresHosts {
  private known: Place | undefined;
  private asking: Promise<Place> | undefined;

  constructor(
    private readonly address: PostgresAddress & { readonly kind: SessionKind },
    /** Makes a connection to one of them, with time limits for connecting and for an answer. */
    private readonly connect: (url: string) => pg.Client,
  ) {}

  find(): Promise<Place> {
    if (this.known !== undefined) return Promise.resolve(this.known);
    this.asking ??= this.ask().finally(() => {
      this.asking = undefined;
    });
    return this.asking;
  }

  /** What was known may not be so any more. */
  doubt(): void {
    this.known = undefined;
  }

  private async ask(): Promise<Place> {
    const { urls, kind } = this.address;
    const reasons: string[] = [];
    const looks = urls.map(async (url) => {
      const server = await look(this.connect(url)).catch((error: Error) => {
        reasons.push(error.message);
        throw error;
      });
      if (isGood(server.isStandby, kind)) return server.place;
      reasons.push(server.isStandby ? 'it is a standby or read-only' : 'it is a primary');
      throw new Error('another kind of server');
    });
    try {
      this.known = await Promise.any(looks);
    } catch {
      // with nothing better, any that answers will do
      const rest = kind === 'prefer-standby' ? urls.map((url) => look(this.connect(url))) : [];
      this.known = await Promise.any(rest).then(
        ({ place }) => place,
        () => undefined,
      );
    }
    if (this.known === undefined)
      throw new NoSuchHost(`none of ${urls.length} hosts is ${kind}: ${reasons.join('; ')}`);
    return this.known;
  }
}

function isGood(isStandby: boolean, kind: SessionKind): boolean {
  if (kind === 'any') return true;
  return isStandby === (kind === 'read-only' || kind === 'standby' || kind === 'prefer-standby');
}

async function look(client: pg.Client): Promise<{ place: Place; isStandby: boolean }> {
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ standby: boolean }>(
      "select pg_is_in_recovery() or current_setting('transaction_read_only')::bool as standby",
    );
    return { place: { host: client.host, port: client.port }, isStandby: rows[0]?.standby === true };
  } finally {
    client.end().catch(() => undefined);
  }
}

type Connected = ((error: Error) => void) | ((error: null, client: pg.Client) => void);

/** Connections that go to the host of several which is the right one at the moment. */
export function clientsOf(hosts: PostgresHosts, Base: typeof pg.Client): typeof pg.Client {
  return class extends Base {
    override connect(): Promise<pg.Client>;
    override connect(callback: Connected): void;
    override connect(callback?: Connected): Promise<pg.Client> | undefined {
      const connected = this.find();
      if (callback === undefined) return connected;
      const tell = callback as (error: Error | null, client?: pg.Client) => void;
      connected.then(
        (client) => tell(null, client),
        (error: Error) => tell(error),
      );
      return undefined;
    }

    private async find(): Promise<pg.Client> {
      try {
        Object.assign(this, await hosts.find());
        return await super.connect();
      } catch (error) {
        hosts.doubt();
        throw error;
      }
    }
  };
}
