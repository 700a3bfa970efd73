import { HttpConnection } from './http-connection.mjs';
import { Latencies } from './latencies.mjs';

/**
 * What one connection sends, and whether what it gets is right; the next request may depend on the replies before.
 * @typedef {{ request: () => Buffer, isRight: (status: number, body: Buffer) => boolean }} Session
 * @typedef {{ requests: number, wrong: number, seconds: number, latencies: Latencies }} Run
 */

/**
 * The same request again and again.
 * @param {Buffer} request
 * @param {Buffer | string} expectedBody
 * @returns {() => Session}
 */
export function fixed(request, expectedBody) {
  const expected = Buffer.from(expectedBody);
  const session = {
    request: () => request,
    isRight: (status, body) => status === 200 && body.equals(expected),
  };
  return () => session;
}

/**
 * Sessions that know what their connection did before: a later run goes on where an earlier one ended.
 * @param {(connection: number) => Session} make
 * @returns {(connection: number) => Session}
 */
export function lasting(make) {
  const known = new Map();
  return (connection) => {
    if (!known.has(connection)) known.set(connection, make(connection));
    return known.get(connection);
  };
}

/**
 * Drives one server with a fixed number of kept connections, each with one request in flight, for a fixed time or
 * number of requests.
 *
 * Not autocannon: on two cores that the load shares with the server and its backend, the load generator must not be
 * what is measured. This one writes a prepared request and looks for the reply's length only; it takes 10 instead of
 * 17 microseconds of CPU a request, and it compares every body.
 *
 * @param {{ port: number, session: (connection: number) => Session, connections: number, seconds?: number,
 *   requests?: number, onRequest?: (done: number) => void }} options
 * @returns {Promise<Run>}
 */
export async function drive({ port, session, connections, seconds, requests = Infinity, onRequest }) {
  const run = { requests: 0, wrong: 0, seconds: 0, latencies: new Latencies() };
  const state = { run, left: requests, over: false, onRequest };
  const opened = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(port)));
  const startedAt = performance.now();
  const timer = setTimeout(
    () => {
      state.over = true;
    },
    seconds * 1_000 || 2 ** 31 - 1,
  );
  try {
    await Promise.all(opened.map((connection, i) => oneConnection(connection, session(i), state)));
  } finally {
    clearTimeout(timer);
    for (const connection of opened) connection.close();
  }
  run.seconds = (performance.now() - startedAt) / 1_000;
  return run;
}

function oneConnection(connection, session, state) {
  const { run } = state;
  return new Promise((resolve, reject) => {
    let sentAt = 0;
    const send = () => {
      if (state.over || state.left <= 0) return resolve();
      state.left -= 1;
      const request = session.request();
      sentAt = performance.now();
      connection.send(request, receive, reject);
    };
    const receive = (status, body) => {
      run.latencies.add((performance.now() - sentAt) * 1_000);
      run.requests += 1;
      if (!session.isRight(status, body)) run.wrong += 1;
      state.onRequest?.(run.requests);
      send();
    };
    send();
  });
}

/**
 * Sends at a fixed pace, whatever the replies do (open loop). A latency begins when the request is handed over: how
 * late the timer of this process was is not the server's.
 * @param {{ send: () => Promise<boolean>, perSecond: number, seconds: number }} options
 *   `send` resolves to whether the reply was right
 * @returns {Promise<Run>}
 */
export async function pace({ send, perSecond, seconds }) {
  const run = { requests: 0, wrong: 0, seconds: 0, latencies: new Latencies() };
  const startedAt = performance.now();
  const total = perSecond * seconds;
  const sent = [];
  const sendOne = async () => {
    const sentAt = performance.now();
    const right = await send().catch(() => false);
    run.latencies.add((performance.now() - sentAt) * 1_000);
    run.requests += 1;
    if (!right) run.wrong += 1;
  };
  await new Promise((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(total, ((performance.now() - startedAt) * perSecond) / 1_000);
      while (sent.length < due) sent.push(sendOne());
      if (sent.length < total) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  await Promise.all(sent);
  run.seconds = (performance.now() - startedAt) / 1_000;
  return run;
}

/**
 * Sends one request over whichever connection is free, and opens another when none is.
 * @param {number} port
 * @param {Session} session
 * @returns {{ send: () => Promise<boolean>, close: () => void }}
 */
export function freeConnections(port, session) {
  const free = [];
  const all = [];
  const takeFree = () => {
    let connection = free.pop();
    while (connection?.ended) connection = free.pop();
    return connection;
  };
  const open = async () => {
    const connection = await HttpConnection.open(port);
    all.push(connection);
    return connection;
  };
  const send = async () => {
    const connection = takeFree() ?? (await open());
    return new Promise((resolve, reject) => {
      const receive = (status, body) => {
        free.push(connection);
        resolve(session.isRight(status, body));
      };
      connection.send(session.request(), receive, reject);
    });
  };
  const close = () => {
    for (const connection of all) connection.close();
  };
  return { send, close };
}
