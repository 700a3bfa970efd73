import { connect } from 'node:net';

/**
 * Calls `work(client)` in a closed loop for each of `clients`, for `seconds`.
 * @returns {Promise<{ rate: number, latencies: number[] }>} calls a second, and how long each took in ms
 */
export async function closedLoop(clients, seconds, work) {
  const latencies = [];
  const end = performance.now() + seconds * 1_000;
  const startedAt = performance.now();
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < end) {
        const sentAt = performance.now();
        await work(client);
        latencies.push(performance.now() - sentAt);
      }
    }),
  );
  return { rate: latencies.length / ((performance.now() - startedAt) / 1_000), latencies };
}

/** One kept connection; a request is bytes that were prepared before, so that making them is not measured. */
export class HttpClient {
  #socket;
  #kept = null;
  #waiting;

  constructor(port) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (chunk) => this.#take(chunk));
    this.#socket.on('error', (error) => this.#waiting?.reject(error));
    this.#socket.on('close', () => this.#waiting?.reject(new Error('the gateway closed a connection')));
  }

  /** @param {Buffer} request @returns {Promise<Buffer>} the body of a 200 */
  send(request) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close() {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #take(chunk) {
    // Node answers 408 on a connection that was never used
    if (this.#waiting === undefined) return;
    this.#kept = this.#kept === null ? chunk : Buffer.concat([this.#kept, chunk]);
    const headEnd = this.#kept.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const head = this.#kept.latin1Slice(0, headEnd);
    const end = headEnd + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
    if (this.#kept.length < end) return;
    const body = this.#kept.subarray(headEnd + 4, end);
    this.#kept = null;
    const { resolve, reject } = this.#waiting;
    this.#waiting = undefined;
    if (head.startsWith('HTTP/1.1 200')) resolve(body);
    else reject(new Error(`${head.split('\r\n', 1)[0]} ${body}`));
  }
}

/** A POST of `body` as JSON, ready to be written. */
export function post(path, token, body) {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${bytes.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes]);
}

export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/**
 * Measures two contenders in turn (A B A B ...), so that what else the machine does meets both alike, and prints their rates and
 * the median of the ratios of the second to the first.
 * @param {{ title: string, goal: number, unit: string, perCall?: number, rounds: number, seconds: number }} bench
 * @param {[name: string, clients: object[], work: (client: object) => Promise<void>][]} contenders
 */
export async function compareLoops({ title, goal, unit, perCall = 1, rounds, seconds }, contenders) {
  const rates = contenders.map(() => []);
  const latencies = contenders.map(() => []);
  for (const [, clients, work] of contenders) await closedLoop(clients, Math.min(1, seconds), work);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, clients, work]] of contenders.entries()) {
      const run = await closedLoop(clients, seconds, work);
      rates[i].push(run.rate * perCall);
      latencies[i].push(...run.latencies);
    }
  }
  console.log(`\n${title} — ${rounds} rounds of ${seconds} s`);
  for (const [i, [name]] of contenders.entries()) {
    const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile(latencies[i], share).toFixed(2));
    const low = Math.round(Math.min(...rates[i]));
    const high = Math.round(Math.max(...rates[i]));
    console.log(
      `  ${name.padEnd(12)} ${Math.round(quantile(rates[i], 0.5))} ${unit}/s (${low}..${high}), p50 ${p50} p95 ${p95} p99 ${p99} ms`,
    );
  }
  const ratio = quantile(
    rates[1].map((rate, round) => rate / rates[0][round]),
    0.5,
  );
  console.log(`  ratio ${ratio.toFixed(2)}; goal: at least ${goal}, ${ratio >= goal ? 'reached' : 'MISSED'}`);
}
