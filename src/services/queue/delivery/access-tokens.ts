import { z } from 'zod';
import { hostKey, ofHost, portOf } from '../../../lib/outbound/address-guard.js';
import type { Outbound } from '../../../lib/outbound/outbound.js';
import { OutboundError } from '../../../lib/outbound/outbound-error.js';
import type { QueueSettings } from '../settings.js';

type Destination = QueueSettings['destinations'][number];
type OauthSettings = Destination['oauth'] & {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
};

/** Hosts and the tokens that are for them. */
export function tokenSources(destinations: readonly Destination[]): Map<string, OauthSettings> {
  return new Map(
    destinations.flatMap(({ host, oauth }) =>
      host === null || oauth.tokenUrl === null ? [] : [[hostKey(host), oauth as OauthSettings] as const],
    ),
  );
}

/** Longest time for a token, in ms. */
const FETCH_MS = 10_000;
const REPLY_BYTES = 64 * 1024;
/** A token is not used any more so long before its end, in ms: the destination's clock may run ahead. */
const MARGIN_MS = 30_000;
/** Of a token that says nothing of its end, in s. */
const LIFETIME_S = 300;
/** A server that gave none is not asked again for so long, in ms, whatever waits. */
const REST_MS = 1_000;

const reply = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  token_type: z.string().regex(/^bearer$/i),
  expires_in: z.coerce.number().positive().default(LIFETIME_S),
});

interface Held {
  readonly token: Promise<string>;
  /** Unix time in ms. */
  until: number;
}

/** Tokens for the destinations that want one, had by client credentials (RFC 6749, 4.4) and kept until they end. */
export class AccessTokens {
  private readonly held = new Map<OauthSettings, Held>();
  private readonly stopping = new AbortController();

  /** @param outbound reaches the servers that give tokens, wherever they are: the operator named them */
  constructor(
    private readonly sources: ReadonlyMap<string, OauthSettings>,
    private readonly outbound: Outbound,
    private readonly now: () => number,
  ) {}

  /**
   * The token that a delivery to the URL is to carry, if any.
   * @throws OutboundError when there should be one and there is none
   */
  tokenFor(url: URL): Promise<string> | undefined {
    const source = this.sourceOf(url);
    if (source === undefined) return undefined;
    const known = this.held.get(source);
    if (known !== undefined && known.until > this.now()) return known.token;
    // all that come while it is on its way wait for the same
    const fetched = this.fetch(source);
    const held: Held = {
      token: fetched.then(({ token }) => token),
      until: Number.POSITIVE_INFINITY,
    };
    this.held.set(source, held);
    fetched.then(
      ({ lifetimeMs }) => {
        held.until = this.now() + Math.max(REST_MS, lifetimeMs - MARGIN_MS);
      },
      () => {
        held.until = this.now() + REST_MS;
      },
    );
    return held.token;
  }

  /** The destination has refused the token: the next delivery gets another. */
  forget(url: URL): void {
    const source = this.sourceOf(url);
    if (source !== undefined) this.held.delete(source);
  }

  stop(): void {
    this.stopping.abort();
  }

  private sourceOf(url: URL): OauthSettings | undefined {
    return this.sources.size === 0 ? undefined : ofHost(this.sources, url.hostname, portOf(url));
  }

  private async fetch(source: OauthSettings): Promise<{ token: string; lifetimeMs: number }> {
    const { tokenUrl, clientId, clientSecret, scope, audience, credentialsIn } = source;
    const url = new URL(tokenUrl);
    const inBody = credentialsIn === 'body';
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      ...(scope === null ? {} : { scope }),
      ...(audience === null ? {} : { audience }),
      ...(inBody ? { client_id: clientId, client_secret: clientSecret } : {}),
    });
    // RFC 6749, 2.3.1: both are form-encoded before they are joined
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
    const { status, body, release } = await this.outbound
      .send({
        url,
        method: 'POST',
        headers: [
          ...['content-type', 'application/x-www-form-urlencoded', 'accept', 'application/json'],
          ...(inBody ? [] : ['authorization', `Basic ${Buffer.from(pair).toString('base64')}`]),
        ],
        body: Buffer.from(form.toString()),
        timeoutMs: FETCH_MS,
        maxBodyBytes: REPLY_BYTES,
        signal: this.stopping.signal,
      })
      .catch((cause: OutboundError) => {
        throw cause.reason === 'aborted' ? cause : noToken(url, cause.message);
      });
    const read = reply.safeParse(parsed(body));
    release();
    if (status !== 200) throw noToken(url, `status ${status}`);
    if (!read.success) throw noToken(url, 'a reply without a bearer token');
    return { token: read.data.access_token, lifetimeMs: read.data.expires_in * 1_000 };
  }
}

function noToken(url: URL, reason: string): OutboundError {
  return new OutboundError('network', `no access token was given by ${url.host}: ${reason}`);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
