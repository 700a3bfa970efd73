import { createServer, type Server, type Socket } from 'node:net';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';

const EACH = 8;
const namespace = queueNamespace({ maxMessageSize: 65_536 });
let gateway: RunningGateway;
let callbacks: Receiver;
const servers: Server[] = [];
const sockets = new Set<Socket>();

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  callbacks = await startReceiver();
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
  await callbacks?.stop();
  await namespace.remove();
});

/** What a destination does with one request; `attempt` counts those of a message from 1. */
type Behaviour = (socket: Socket, attempt: number) => void;

interface Destination {
  readonly url: string;
  /** How often each message came, by its id. */
  readonly attempts: ReadonlyMap<string, number>;
}

/** A destination below HTTP: one request a connection. */
async function destination(behave: Behaviour): Promise<Destination> {
  const attempts = new Map<string, number>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    let head = '';
    socket.on('data', (chunk) => {
      const before = head.includes('\r\n\r\n');
      head += String(chunk);
      if (before || !head.includes('\r\n\r\n')) return;
      const id = /message-id: (\S+)/i.exec(head)?.[1] ?? 'none';
      attempts.set(id, (attempts.get(id) ?? 0) + 1);
      behave(socket, attempts.get(id) ?? 0);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}/x`, attempts };
}

const answer = (status: string, headers = '') => `HTTP/1.1 ${status}\r\nConnection: close\r\n${headers}\r\n`;

/** Says `head`, and then `piece` again and again for as long as anybody reads. */
const endless =
  (head: string, piece: string): Behaviour =>
  (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.write(head);
    socket.on('drain', more);
    more();
  };

const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const X_64K = 'x'.repeat(65_536);

function continueTwice(socket: Socket): void {
  socket.write('HTTP/1.1 100 Continue\r\n\r\n');
  setTimeout(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 50);
  setTimeout(() => socket.end(answer('200 OK')), 100);
}

function drip(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n');
  const timer = setInterval(() => socket.write('x'), 50);
  socket.on('close', () => clearInterval(timer));
}

const FATES: readonly [what: string, behave: Behaviour, attempts: number, dead: RegExp | number | null][] = [
  ['answers', (socket) => socket.end(answer('200 OK')), 1, null],
  ['answers 500 and then 200', (s, n) => s.end(answer(n === 1 ? '500 No' : '200 OK')), 2, null],
  ['answers 1 GB', endless(answer('200 OK', 'Content-Length: 1073741824\r\n'), X_64K), 1, null],
  [
    'answers byte by byte without end',
    endless(answer('200 OK', CHUNKED), '1\r\nx\r\n'.repeat(9_999)),
    1,
    null,
  ],
  ['fails byte by byte without end', endless(answer('500 No', CHUNKED), '1\r\nx\r\n'.repeat(9_999)), 2, 500],
  ['has an endless chunk extension', endless(`${answer('200 OK', CHUNKED)}1;x=`, X_64K), 1, null],
  [
    'has long chunk extensions without end',
    endless(answer('500 No', CHUNKED), `1;x=${X_64K}\r\nx\r\n`),
    2,
    500,
  ],
  ['has an endless length of a chunk', endless(answer('200 OK', CHUNKED), '0'.repeat(65_536)), 1, null],
  ['says empty lines without end', endless('', '\r\n'.repeat(30_000)), 2, /no body/],
  [
    'has early hints without end',
    endless('', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(2_000)),
    2,
    /no body/,
  ],
  ['says 100 without end', endless('', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2_000)), 2, /no body/],
  ['answers early hints first', (s) => s.end(`HTTP/1.1 103 Early Hints\r\n\r\n${answer('204 No')}`), 1, null],
  ['redirects in a loop', (s) => s.end(answer('308 There', 'Location: /x\r\n')), 2, 308],
  ['resets', (socket) => socket.resetAndDestroy(), 2, /ECONNRESET|other side closed/],
  ['closes', (socket) => socket.end(), 2, /other side closed/],
  ['hangs', () => undefined, 2, /within 5000 ms/],
  ['drips', drip, 2, /within 5000 ms/],
  ['ends too early', (s) => s.end(answer('200 OK', 'Content-Length: 9\r\n')), 2, /content-length/],
  ['has long headers', (s) => s.end(answer('200 OK', `X: ${'x'.repeat(100_000)}\r\n`)), 1, null],
  ['has endless headers', (s) => s.end(answer('200 OK', `X: ${'x'.repeat(2_000_000)}\r\n`)), 1, null],
  ['fails with endless headers', (s) => s.end(answer('500 No', `X: ${'x'.repeat(2_000_000)}\r\n`)), 2, 500],
  [
    'has endless hints',
    (s) => s.end(`HTTP/1.1 103 Hints\r\nX: ${'x'.repeat(2_000_000)}\r\n\r\n`),
    2,
    /[Hh]eaders/,
  ],
  ['says 100 unasked', (s) => s.end(`HTTP/1.1 100 Continue\r\n\r\n${answer('200 OK')}`), 1, null],
  ['says 100 twice', continueTwice, 1, null],
  [
    'says 103 and 100 twice at once',
    (s) =>
      s.end(
        `HTTP/1.1 103 Early Hints\r\n\r\n${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2)}${answer('200 OK')}`,
      ),
    1,
    null,
  ],
  [
    'changes the protocol',
    (s) => s.end('HTTP/1.1 101 No\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
    2,
    /./,
  ],
  ['talks nonsense', (socket) => socket.end('nonsense\r\n\r\n'), 2, /./],
];

it('every message ends as its destination behaves, as often as it should, whatever the others do', async () => {
  const headers = {
    'upstash-retries': '1',
    'upstash-retry-delay': '100',
    'upstash-failure-callback': `${callbacks.url}/failed`,
  };
  const runs = await Promise.all(
    FATES.map(async ([what, behave, attempts, dead]) => {
      const at = await destination(behave);
      // a busy machine takes its time for an answer, which must not count as silence, and for a request, which must arrive
      const timeout = String(dead).includes('5000 ms') ? '5s' : '30s';
      const replies = await Promise.all(
        Array.from({ length: EACH }, () =>
          publish(gateway, at.url, { ...headers, 'upstash-timeout': timeout }),
        ),
      );
      return { what, at, attempts, dead, ids: replies.map(({ body }) => body.messageId) };
    }),
  );
  await eventually(async () => {
    const open = await namespace.query('select id from $schema.messages where finished_at is null');
    expect(open).toEqual([]);
  });
  type Letter = { message_id: string; response_status: number; error: string | null };
  const letters = await namespace.query<Letter>(
    `select id as message_id, failure_status as response_status, failure_error as error from $schema.messages
      where dead and id in (select message_id from $schema.dead_letters)`,
  );
  for (const { what, at, attempts, dead, ids } of runs) {
    expect([what, [...at.attempts.keys()].sort()]).toEqual([what, [...ids].sort()]);
    expect([what, ...at.attempts.values()]).toEqual([what, ...Array(EACH).fill(attempts)]);
    const own = letters.filter(({ message_id }) => ids.includes(message_id));
    expect([what, own.length]).toEqual([what, dead === null ? 0 : EACH]);
    for (const { error, response_status } of own) {
      if (typeof dead === 'number') expect([what, response_status]).toEqual([what, dead]);
      else expect([what, error]).toEqual([what, expect.stringMatching(dead ?? '')]);
    }
  }
  const told = callbacks.received.map(({ body }) => JSON.parse(String(body)) as { sourceMessageId: string });
  expect(told.map(({ sourceMessageId }) => sourceMessageId).sort()).toEqual(
    letters.map(({ message_id }) => message_id).sort(),
  );
});
