import { z } from 'zod';
import { secret } from '../settings/settings.js';
import { AddressGuard } from './address-guard.js';
import type { Ways } from './connector.js';
import { Outbound } from './outbound.js';
import { OutboundError } from './outbound-error.js';

const text = (what: string) => z.string().min(1).max(4_096).nullable().default(null).describe(what);

export const oauthSettings = z
  .strictObject({
    tokenUrl: z
      .string()
      .refine((url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), {
        error: 'expected a URL that starts with http:// or https://',
      })
      .nullable()
      .default(null)
      .describe('Where access tokens are had, by client credentials (RFC 6749, 4.4); null: nowhere.'),
    clientId: text('Who asks for tokens.'),
    clientSecret: secret().nullable().default(null).describe('By what it proves itself.'),
    scope: text('What is asked for, if the server wants to know.'),
    audience: text('For whom, if the server wants to know.'),
    credentialsIn: z
      .enum(['header', 'body'])
      .default('header')
      .describe('Where id and secret are sent: as Basic credentials, or as fields of the form.'),
  })
  .superRefine(({ tokenUrl, clientId, clientSecret }, context) => {
    if (tokenUrl === null) return;
    for (const [key, value] of Object.entries({ clientId, clientSecret }))
      if (value === null)
        context.addIssue({ code: 'custom', path: [key], message: 'missing, although there is a tokenUrl' });
  });

/** Where tokens are had. */
export type OauthClient = z.output<typeof oauthSettings> & {
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
};

/** The settings where they name a server. */
export function oauthClient(settings: z.output<typeof oauthSettings>): OauthClient | undefined {
  return settings.tokenUrl === null ? undefined : (settings as OauthClient);
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

/** The access token of one client: asked for when it is wanted, and kept until it ends. */
export class AccessToken {
  private held: Held | undefined;
  private readonly outbound: Outbound;
  private readonly stopping = new AbortController();

  constructor(
    private readonly client: OauthClient,
    /** How the server is reached, wherever it is: the operator named it. */
    ways: Ways,
    /** Unix time in ms. */
    private readonly now: () => number,
  ) {
    const { hostname } = new URL(client.tokenUrl);
    const guard = new AddressGuard([hostname.replace(/^\[(.*)\]$/, '$1')]);
    this.outbound = new Outbound(guard, ways);
  }

  /** @throws OutboundError when the server gives none */
  value(): Promise<string> {
    if (this.held !== undefined && this.held.until > this.now()) return this.held.token;
    // all that come while it is on its way wait for the same
    const fetched = this.fetch(this.client);
    const held: Held = { token: fetched.then(({ token }) => token), until: Number.POSITIVE_INFINITY };
    this.held = held;
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

  /** It was refused: the next one is another. */
  forget(): void {
    this.held = undefined;
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await this.outbound.close();
  }

  private async fetch(source: OauthClient): Promise<{ token: string; lifetimeMs: number }> {
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
