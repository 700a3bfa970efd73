import { TOKENS } from './tokens.js';

export interface KvReply {
  readonly status: number;
  readonly body: { readonly result?: unknown; readonly error?: string };
  readonly headers: Headers;
  readonly ms: number;
}

export interface KvRequestOptions {
  /** Default: the Standard token. */
  readonly token?: string;
  /** Default `/kv`. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a command, or whatever the path asks for, as JSON; `body` is what the gateway answered. */
export async function kvRequest(
  url: string,
  command: readonly unknown[],
  { token = TOKENS.kv, path = '/kv', headers = {} }: KvRequestOptions = {},
): Promise<KvReply> {
  const startedAt = performance.now();
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify(command),
  });
  const body = (await response.json()) as KvReply['body'];
  return { status: response.status, body, headers: response.headers, ms: performance.now() - startedAt };
}
