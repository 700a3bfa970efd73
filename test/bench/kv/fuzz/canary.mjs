import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection } from '../../http-connection.mjs';
import { get, post } from '../requests.mjs';

/** Between two rounds, in ms: it shall be there all the time and yet leave the machine to the others. */
const PAUSE_MS = 2;

/**
 * A client that behaves, beside those that do not: whatever they send, its own answers must be right. Its keys may be
 * gone (FLUSHALL, SWAPDB), but no other value may be theirs.
 */
export class Canary {
  rounds = 0;
  /** Longest wait for an answer, in ms. */
  slowest = 0;
  #token;
  #name;
  #onWrong;
  #connection;
  #stopped = false;
  #done = Promise.resolve();

  /** @param {{ token: string, name: string, onWrong: (problem: string) => void }} options */
  constructor({ token, name, onWrong }) {
    this.#token = token;
    this.#name = name;
    this.#onWrong = onWrong;
  }

  /** @param {number} port */
  async start(port) {
    this.#connection = await HttpConnection.open(port);
    this.#done = this.#run().catch((error) => this.#onWrong(error.message));
  }

  /** Resolves when its last answer is there. */
  async stop() {
    this.#stopped = true;
    await this.#done;
    this.#connection?.close();
  }

  async #run() {
    while (!this.#stopped) {
      this.rounds += 1;
      await this.#round(`canary:${this.#name}`, `${this.#name}/${this.rounds}`);
      await sleep(PAUSE_MS);
    }
  }

  async #round(key, value) {
    const expect = (form, text, ...right) => {
      if (!right.includes(text)) this.#onWrong(`${form} of ${value} gave ${text.slice(0, 300)}`);
    };
    const token = this.#token;
    const result = (text) => JSON.stringify({ result: text });
    const json = (path, body, base64 = false) =>
      this.#ask(post(path, JSON.stringify(body), { token, base64 }));
    expect('SET', await json('/kv', ['SET', key, value]), result('OK'));
    expect('GET', await this.#ask(get(`/kv/get/${key}`, token)), result(value), result(null));
    const rows = [
      ['SET', key, `${value}t`],
      ['GET', key],
      ['INCR', `${key}:n`],
      ['DEL', `${key}:n`],
      ['ECHO', value],
    ];
    const results = ['OK', `${value}t`, 1, 1, value];
    expect(
      'transaction',
      await json('/kv/multi-exec', rows),
      JSON.stringify(results.map((r) => ({ result: r }))),
    );
    const echoes = ['a', 'b', 'c'].map((part) => ['ECHO', value + part]);
    const encoded = echoes.map(([, text]) => ({ result: Buffer.from(text).toString('base64') }));
    expect('pipeline', await json('/kv/pipeline', echoes, true), JSON.stringify(encoded));
  }

  #ask(request) {
    const startedAt = performance.now();
    return new Promise((resolve, reject) => {
      const receive = (_status, body) => {
        this.slowest = Math.max(this.slowest, performance.now() - startedAt);
        resolve(body.toString());
      };
      this.#connection.send(request, receive, reject);
    });
  }
}
