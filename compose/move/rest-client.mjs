import { setTimeout as sleep } from 'node:timers/promises';

const requestMs = 60_000;
const attempts = 6;
const longestPauseMs = 10_000;

/** What may pass: the server is busy or away, or this is too fast for it. */
const mayPass = (status) => status === 429 || status === 502 || status === 503 || status === 504;

/** @typedef {{url: string, token: string}} Place */

/** A refusal, with what was answered. */
export class Refused extends Error {
  /** @param {string} asked @param {number} status @param {string} text */
  constructor(asked, status, text) {
    super(`${asked}: ${status} ${text.slice(0, 300)}`);
    this.status = status;
  }
}

/** One server that is asked again when it is busy or away; so only for what may be done twice. */
export class RestClient {
  /** @param {Place} place */
  constructor({ url, token }) {
    this.url = url.replace(/\/$/, '');
    this.token = token;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body] JSON; bytes go out as they are
   * @param {Record<string, string>} [headers]
   * @returns {Promise<any>} the body of a 2xx
   * @throws {Refused} for everything else that does not pass
   */
  async ask(method, path, body, headers = {}) {
    for (let attempt = 1; ; attempt++) {
      const reply = await this.send(method, path, body, headers).catch(
        (error) => /** @type {Error} */ (error),
      );
      const isLast = attempt === attempts;
      if (!(reply instanceof Error)) {
        const text = await reply.text();
        if (reply.ok) return JSON.parse(text);
        if (isLast || !mayPass(reply.status))
          throw new Refused(`${method} ${this.url}${path.slice(0, 100)}`, reply.status, text);
        await sleep(
          Math.min(longestPauseMs, Number(reply.headers.get('retry-after') ?? 0) * 1_000 || pause(attempt)),
        );
      } else {
        if (isLast) throw new Error(`${this.url} does not answer: ${reasonOf(reply)}`);
        await sleep(pause(attempt));
      }
    }
  }

  send(method, path, body, headers) {
    return fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, ...headers },
      ...(body === undefined
        ? {}
        : { body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body) }),
      signal: AbortSignal.timeout(requestMs),
    });
  }
}

const pause = (attempt) => 250 * 2 ** (attempt - 1);

/** fetch says why only in the cause. */
const reasonOf = (/** @type {any} */ { message, cause }) =>
  cause?.code ? `${message} (${cause.code})` : message;

/** Does `work` for each, some at once. @template T @param {readonly T[]} all @param {number} atOnce @param {(one: T) => Promise<void>} work */
export async function eachOf(all, atOnce, work) {
  let next = 0;
  const worker = async () => {
    while (next < all.length) await work(/** @type {T} */ (all[next++]));
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, worker));
}
