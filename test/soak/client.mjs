import { Agent, request } from 'undici';

/** Longest wait for an answer: no request of the gateway takes longer, whatever is away. */
const REPLY_MS = 45_000;
/** What a gateway may say while a backend is away. */
const PASSING = new Set([429, 502, 503, 504]);

/**
 * Sends requests and keeps account: of the times of good answers, and of answers that nobody should get.
 * An answer that is not good leaves open what has happened.
 */
export class Client {
  agent = new Agent({ connections: 64 });
  /** By service, when its requests were answered well, in ms. */
  good = new Map();
  /** By service and status or error, how many. */
  others = new Map();
  findings = [];

  constructor(gateway, credentials) {
    this.gateway = gateway;
    this.credentials = credentials;
  }

  /** @returns {Promise<{status: number, body: any, headers: any} | undefined>} nothing where the outcome is open */
  async send(service, path, { method = 'POST', body, headers = {}, signal, allowed = [] } = {}) {
    const json = body !== undefined && typeof body !== 'string';
    try {
      const answer = await request(`${this.gateway.url}${path}`, {
        method,
        dispatcher: this.agent,
        headers: {
          authorization: this.credentials[service],
          ...(json ? { 'content-type': 'application/json' } : {}),
          ...headers,
        },
        ...(body === undefined ? {} : { body: json ? JSON.stringify(body) : body }),
        signal: signal ?? AbortSignal.timeout(REPLY_MS),
      });
      const text = await answer.body.text();
      if (answer.statusCode < 300) {
        this.wasGood(service);
        return {
          status: answer.statusCode,
          body: text === '' ? undefined : JSON.parse(text),
          headers: answer.headers,
        };
      }
      this.note(service, `${answer.statusCode} ${text.replace(/[\d.]+/g, 'N').slice(0, 120)}`);
      if (!PASSING.has(answer.statusCode) && !allowed.includes(answer.statusCode))
        this.findings.push(
          `${service}: ${method} ${path} is answered ${answer.statusCode} ${text.slice(0, 200)}`,
        );
    } catch (error) {
      if (signal?.aborted) return undefined;
      const word = error.code ?? error.name;
      this.note(service, word);
      if (error.name === 'TimeoutError')
        this.findings.push(`${service}: ${method} ${path} has no answer within ${REPLY_MS / 1_000} s`);
      if (error.name === 'SyntaxError') this.findings.push(`${service}: ${path}: half an answer`);
    }
    return undefined;
  }

  /** A call as an instance of a consumer group. @returns what it read and the delivery's name */
  async consume(path, headers) {
    // 409: the instance has gone elsewhere, or the delivery with the gateway that had it
    const answer = await this.send('broker', path, { method: 'GET', headers, allowed: [409] });
    return answer && { records: answer.body, delivery: answer.headers['broker-delivery'] };
  }

  /** An instance says good-bye; one that is not there any more has nothing to leave. */
  leave(instance) {
    return this.send('broker', `/broker/delete-consumer/${instance}`, {
      method: 'DELETE',
      allowed: [404, 409],
    });
  }

  wasGood(service) {
    const times = this.good.get(service) ?? [];
    times.push(performance.now());
    this.good.set(service, times);
  }

  note(service, word) {
    const key = `${service} ${word}`;
    this.others.set(key, (this.others.get(key) ?? 0) + 1);
  }

  /** Longest time without a good answer between two moments, in ms. */
  silence(service, from, to) {
    let last = from;
    let longest = 0;
    for (const at of this.good.get(service) ?? []) {
      if (at < from) continue;
      longest = Math.max(longest, Math.min(at, to) - last);
      if (at >= to) return longest;
      last = at;
    }
    return Math.max(longest, to - last);
  }

  /** Ends the connections that are kept, so that what is left is the gateway's own. */
  async rest() {
    await this.agent.close();
    this.agent = new Agent({ connections: 64 });
  }
}
