import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { queryParameter } from '../query.js';
import type { AuthScheme, Principal } from '../route.js';

/**
 * Finds whose credentials a request carries; `undefined` when it has none that are known. Reads headers and URL only.
 * @throws HttpError as `AuthScheme.issued`
 */
export type Authenticate = (request: IncomingMessage) => Principal | undefined;

interface Known {
  digest: Buffer;
  principal: Principal;
}

/** The check of an instance's credentials, which may be exchanged for others while requests come. */
export class Gate {
  authenticate: Authenticate;

  private readonly issued: Pick<AuthScheme, 'issued'>;

  constructor(scheme: AuthScheme) {
    this.issued = scheme.issued === undefined ? {} : { issued: scheme.issued };
    this.authenticate = authenticator(scheme);
  }

  /** Tokens made at run time stay what they are. */
  change(scheme: AuthScheme): void {
    this.authenticate = authenticator({ ...scheme, ...this.issued });
  }
}

const gates = new WeakMap<object, Gate>();

/** One for all ports and paths that an instance is served at. */
export function gateOf(instance: { readonly auth: AuthScheme }): Gate {
  const gate = gates.get(instance) ?? new Gate(instance.auth);
  gates.set(instance, gate);
  return gate;
}

/** Compiles a scheme into its check. Credentials are kept and compared as SHA-256 digests, in constant time. */
export function authenticator(scheme: AuthScheme): Authenticate {
  return scheme.kind === 'bearer' ? bearer(scheme) : basic(scheme);
}

/** Value of the `WWW-Authenticate` header of a 401. */
export function challenge(scheme: AuthScheme): string {
  return scheme.kind === 'bearer' ? 'Bearer realm="portico"' : 'Basic realm="portico", charset="UTF-8"';
}

function bearer(scheme: Extract<AuthScheme, { kind: 'bearer' }>): Authenticate {
  const known = scheme.credentials.map(({ token, principal }) => ({ digest: digestOf(token), principal }));
  return (request) => {
    const fromQuery =
      scheme.queryKey === undefined ? undefined : queryParameter(request.url ?? '', scheme.queryKey);
    const presented = fromQuery ?? bearerToken(request.headers.authorization, scheme.bareToken === true);
    if (presented === undefined) return undefined;
    return find(known, presented) ?? scheme.resolve?.(presented) ?? scheme.issued?.(presented, undefined);
  };
}

function bearerToken(header: string | undefined, bareToken: boolean): string | undefined {
  if (header === undefined) return undefined;
  const match = /^bearer +(\S+) *$/i.exec(header);
  if (match !== null) return match[1];
  return bareToken && /^\S+$/.test(header) ? header : undefined;
}

function basic(scheme: Extract<AuthScheme, { kind: 'basic' }>): Authenticate {
  // NUL cannot stand in either part (settings allow printable ASCII), so it separates them without ambiguity
  const known = scheme.credentials.map(({ username, password, principal }) => ({
    digest: digestOf(`${username}\0${password}`),
    principal,
  }));
  return (request) => {
    const presented =
      basicCredentials(request.headers.authorization) ?? queryCredentials(request.url, scheme.queryKeys);
    if (presented === undefined) return undefined;
    const found = find(known, presented);
    if (found !== undefined || scheme.issued === undefined) return found;
    const [username, secret = ''] = presented.split('\0', 2);
    return scheme.issued(secret, username);
  };
}

function basicCredentials(header: string | undefined): string | undefined {
  const encoded = /^basic +([A-Za-z0-9+/_-]+=*) *$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  return colon < 0 ? undefined : `${decoded.slice(0, colon)}\0${decoded.slice(colon + 1)}`;
}

function queryCredentials(
  url: string | undefined,
  keys: Extract<AuthScheme, { kind: 'basic' }>['queryKeys'],
): string | undefined {
  if (keys === undefined) return undefined;
  const path = (url ?? '').split('?', 1)[0] ?? '';
  if (!keys.paths.includes(path.replace(/\/$/, ''))) return undefined;
  const username = queryParameter(url ?? '', keys.username);
  const password = queryParameter(url ?? '', keys.password);
  return username === undefined || password === undefined ? undefined : `${username}\0${password}`;
}

function find(known: readonly Known[], presented: string): Principal | undefined {
  digestInto(PRESENTED, presented);
  let found: Principal | undefined;
  // no early exit: the time must not tell which credential was nearly right
  for (const candidate of known) {
    if (timingSafeEqual(candidate.digest, PRESENTED)) found = candidate.principal;
  }
  return found;
}

/** Digest of the credential being checked; one for all, because a check never waits. */
const PRESENTED = Buffer.alloc(64);

function digestOf(text: string): Buffer {
  return digestInto(Buffer.alloc(64), text);
}

/** SHA-256 in hexadecimal: as text it costs 0.8 us, as a fresh Buffer 2 us. */
function digestInto(target: Buffer, text: string): Buffer {
  target.write(hash('sha256', text), 0, 'latin1');
  return target;
}
