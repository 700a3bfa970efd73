import { connect } from 'node:net';

/** Width of a latency bucket in microseconds, and how many there are (the last takes all that is slower). */
const BUCKET_US = 20;
const BUCKETS = 50_000;

/** Latencies of one or more runs. */
export class Latencies {
  #counts = new Uint32Array(BUCKETS);
  total = 0;

  /** @param {number} microseconds */
  add(microseconds) {
    this.#counts[Math.min(BUCKETS - 1, Math.floor(microseconds / BUCKET_US))] += 1;
    this.total += 1;
  }

  /** @param {Latencies} other */
  merge(other) {
    for (let i = 0; i < BUCKETS; i++) this.#counts[i] += other.#counts[i];
    this.total += other.total;
  }

  /** Milliseconds below which the share `quantile` of all requests ended. @param {number} quantile */
  quantile(quantile) {
    let rest = this.total * quantile;
    for (let i = 0; i < BUCKETS; i++) {
      rest -= this.#counts[i];
      if (rest <= 0) return ((i + 1) * BUCKET_US) / 1_000;
    }
    return 0;
  }
}

/**
 * Drives one server with a fixed number of kept connections, each with one request in flight, for a fixed time.
 *
 * Not autocannon: on two cores that the load shares with the server and its backend, the load generator must not be
 * what is measured. This one writes a prepared request and looks for the reply's length only; it takes 10 instead of
 * 17 microseconds of CPU a request, and it compares every body.
 *
 * @param {{ port: number, request: Buffer, expectedBody: Buffer | ((body: Buffer) => boolean), connections: number, seconds: number }} options
 * @returns {Promise<{ requests: number, wrong: number, seconds: number, latencies: Latencies }>}
 */
export async function drive({ port, request, expectedBody, connections, seconds }) {
  const latencies = new Latencies();
  const run = { requests: 0, wrong: 0, over: false };
  const isRight = typeof expectedBody === 'function' ? expectedBody : (body) => body.equals(expectedBody);
  const startedAt = performance.now();
  const timer = setTimeout(() => {
    run.over = true;
  }, seconds * 1_000);
  await Promise.all(
    Array.from({ length: connections }, () => oneConnection({ port, request, isRight, run, latencies })),
  );
  clearTimeout(timer);
  return {
    requests: run.requests,
    wrong: run.wrong,
    seconds: (performance.now() - startedAt) / 1_000,
    latencies,
  };
}

/** Longest wait for a single reply, in ms. */
const REPLY_MS = 30_000;

function oneConnection({ port, request, isRight, run, latencies }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let kept = null;
    let sentAt = 0;
    const send = () => {
      sentAt = performance.now();
      socket.write(request);
    };
    socket.setTimeout(REPLY_MS, () => socket.destroy(new Error(`no reply within ${REPLY_MS} ms`)));
    socket.on('connect', send);
    socket.on('data', (chunk) => {
      kept = kept === null ? chunk : Buffer.concat([kept, chunk]);
      const reply = readReply(kept);
      if (reply === undefined) return;
      kept = null;
      latencies.add((performance.now() - sentAt) * 1_000);
      run.requests += 1;
      if (reply.status !== 200 || !isRight(reply.body)) run.wrong += 1;
      if (run.over) socket.end();
      else send();
    });
    socket.on('error', reject);
    socket.on('close', () => (run.over ? resolve() : reject(new Error('the server closed a connection'))));
  });
}

/** One complete reply with a Content-Length, or nothing yet. */
function readReply(bytes) {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = bytes.latin1Slice(0, headEnd);
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  if (bytes.length < headEnd + 4 + length) return undefined;
  return { status: Number(head.slice(9, 12)), body: bytes.subarray(headEnd + 4, headEnd + 4 + length) };
}
