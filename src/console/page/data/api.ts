import { gatewayUrl } from './base.js';

/** What a request was refused with, or why there was no answer. */
export class ApiError extends Error {
  /** @param status 0: no answer came */
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export interface Call {
  readonly method?: string;
  /** Sent as JSON unless it is text. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly signal?: AbortSignal;
}

export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  /** Milliseconds from the request to the end of the answer. */
  readonly took: number;
}

/** So long a request may take in all, in ms. */
const LIMIT_MS = 30_000;

/** @throws ApiError */
export async function ask<Body>(
  path: string,
  authorization: string | undefined,
  call: Call = {},
): Promise<Answer<Body>> {
  const { method = 'GET', body, headers = {}, query = {}, signal } = call;
  const begun = performance.now();
  const limit = AbortSignal.timeout(LIMIT_MS);
  const init: RequestInit = {
    method,
    headers: {
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      ...(body === undefined || typeof body === 'string' ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
  };
  if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body);
  try {
    const response = await fetched(gatewayUrl(path) + queryText(query), init);
    const text = await response.text();
    const parsed = parse(text);
    if (!response.ok) throw new ApiError(response.status, messageOf(parsed, response));
    const took = performance.now() - begun;
    return { status: response.status, headers: response.headers, body: parsed as Body, took };
  } catch (error) {
    if (error instanceof ApiError || signal?.aborted) throw error;
    throw new ApiError(0, limit.aborted ? 'No answer within 30 s.' : 'The gateway cannot be reached.');
  }
}

/** What only looks is asked once more where the network has failed: machines change theirs, and what was under way is lost. */
async function fetched(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (init.method !== 'GET' || init.signal?.aborted) throw error;
    return fetch(url, init);
  }
}

export function queryText(query: Readonly<Record<string, string | number | undefined>>): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  if (pairs.length === 0) return '';
  return `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString()}`;
}

/** What is no JSON is text. */
export function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function messageOf(body: unknown, { status, statusText }: Response): string {
  if (typeof body === 'object' && body !== null) {
    const { error, message } = body as { error?: unknown; message?: unknown };
    if (typeof error === 'string') return error;
    if (typeof message === 'string') return message;
  }
  return typeof body === 'string' && body.length < 300 ? body : `${status} ${statusText}`;
}
