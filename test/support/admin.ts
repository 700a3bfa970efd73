import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { backendAddress } from './environment.js';
import { type RunningGateway, startGateway } from './gateway.js';
import { dropSchema } from './vector.js';

export const ADMIN_TOKEN = 'an-administrators-token-0123456789';

export interface AdminReply<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T & { readonly error?: string };
  readonly text: string;
}

export type AdminCall = <T = Record<string, unknown>>(
  method: string,
  path: string,
  body?: unknown,
  token?: string,
) => Promise<AdminReply<T>>;

/** Calls the administrator's routes of the gateway at `url`. */
export function adminCaller(url: string): AdminCall {
  return async <T>(method: string, path: string, body?: unknown, token = ADMIN_TOKEN) => {
    const reply = await fetch(`${url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, text, body: JSON.parse(text) as T };
  };
}

export interface Made {
  readonly id: string;
  readonly token: string;
}

/** Makes a token. @throws where it was not made */
export async function makeToken(call: AdminCall, about: Record<string, unknown>): Promise<Made> {
  const { status, body, text } = await call<Made>('POST', '/tokens', { name: 'of a test', ...about });
  if (status !== 201) throw new Error(`${status} ${text}`);
  return body;
}

/** A place of the test's own in one of the stores. */
export interface StorePlace {
  readonly kind: 'postgres' | 'redis';
  readonly url: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** All that lies there, as text. */
  contents(): Promise<string>;
  remove(): Promise<void>;
}

const VARIABLES = { postgres: 'PORTICO_DATABASE_URL', redis: 'PORTICO_REDIS_URL' } as const;

export function storePlace(
  kind: StorePlace['kind'],
  contents: (name: string) => Promise<string>,
): StorePlace {
  const name = `access_${randomBytes(4).toString('hex')}`;
  const url = backendAddress(VARIABLES[kind]);
  const settings = kind === 'postgres' ? { schema: name } : { prefix: `${name}:` };
  return {
    kind,
    url,
    settings: { token: ADMIN_TOKEN, storeUrl: url, ...settings },
    contents: () => contents(name),
    remove: async () => {
      if (kind === 'postgres') await dropSchema(name);
      else await removeKeys(url, name);
    },
  };
}

async function removeKeys(url: string, name: string): Promise<void> {
  const redis = new Redis(url);
  const keys = await redis.keys(`${name}:*`);
  if (keys.length > 0) await redis.del(...keys);
  redis.disconnect();
}

/** Two gateways on the same store. */
export async function startTwo(document: Record<string, unknown>): Promise<RunningGateway[]> {
  return Promise.all([startGateway(document), startGateway(document)]);
}
