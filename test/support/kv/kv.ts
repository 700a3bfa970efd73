import { TOKENS } from '../tokens.js';

export interface KvAnswer {
  readonly status: number;
  readonly text: string;
  /** The body as JSON; `undefined` where it is none. */
  readonly body: unknown;
  readonly headers: Headers;
  readonly ms: number;
}

export interface KvCaller {
  /** A request to `path` below the base path. */
  send(path: string, init?: RequestInit): Promise<KvAnswer>;
  /** One command as a JSON array. */
  run(...command: unknown[]): Promise<KvAnswer>;
  pipeline(...rows: unknown[][]): Promise<KvAnswer>;
  transaction(...rows: unknown[][]): Promise<KvAnswer>;
}

/** Calls the key-value service at `url` (with its base path) in the name of `token`. */
export function kvCaller(url: string, token: string = TOKENS.kv): KvCaller {
  const send = async (path: string, init: RequestInit = {}): Promise<KvAnswer> => {
    const startedAt = performance.now();
    const headers = { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) };
    const response = await fetch(`${url}${path}`, { ...init, headers });
    const text = await response.text();
    return {
      status: response.status,
      text,
      body: /^[[{]/.test(text) ? JSON.parse(text) : undefined,
      headers: response.headers,
      ms: performance.now() - startedAt,
    };
  };
  const post = (path: string, body: unknown) => send(path, { method: 'POST', body: JSON.stringify(body) });
  return {
    send,
    run: (...command) => post('', command),
    pipeline: (...rows) => post('/pipeline', rows),
    transaction: (...rows) => post('/multi-exec', rows),
  };
}

export interface KvRequestOptions {
  /** Default: the Standard token. */
  readonly token?: string;
  /** Default `/kv`. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface KvReply extends KvAnswer {
  readonly body: { readonly result?: unknown; readonly error?: string };
}

/** Sends a command, or whatever the path asks for, to the gateway at `url`. */
export async function kvRequest(
  url: string,
  command: readonly unknown[],
  { token = TOKENS.kv, path = '/kv', headers = {} }: KvRequestOptions = {},
): Promise<KvReply> {
  const init = { method: 'POST', headers, body: JSON.stringify(command) };
  return (await kvCaller(url, token).send(path, init)) as KvReply;
}
