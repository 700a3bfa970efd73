import { randomBytes } from 'node:crypto';
import { backendAddress } from '../../support/environment.js';
import { eventually, HANGS_MS } from '../../support/eventually.js';
import { kvCaller } from '../../support/kv/kv.js';
import { RawClient } from '../../support/raw-client.js';
import { type SpawnedGateway, spawnGateway } from '../../support/spawned-gateway.js';
import { startRelay, type TcpRelay } from '../../support/tcp-relay.js';
import { TOKENS } from '../../support/tokens.js';

/** Half of a round trip to the Redis that is far. */
const DELAY_MS = 25;
/** Redis needs 20 s and more for all of them. */
const FLOOD = 1_200;
/** So many large replies may come while a small one is awaited; all that Redis was sent comes before it otherwise. */
const MAY_COME_FIRST = 100;
/** Of one connection nine are at work at once. */
const CONNECTIONS = 150;
const ELEMENTS = 200_000;
const list = `kv-admission:${randomBytes(4).toString('hex')}`;

let gateway: SpawnedGateway;
let relay: TcpRelay;
const near = () => kvCaller(`${gateway.url}/kv`);
const far = () => kvCaller(`${gateway.url}/far`);

beforeAll(async () => {
  const url = new URL(backendAddress('PORTICO_REDIS_URL'));
  relay = await startRelay(Number(url.port), DELAY_MS);
  url.port = String(relay.port);
  const tokens = { token: TOKENS.kv, readOnlyToken: TOKENS.kvReadOnly };
  gateway = await spawnGateway({
    kv: {
      databases: [tokens, { ...tokens, name: 'far', path: '/far', url: url.href }],
    },
  });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  const batch = Array.from({ length: ELEMENTS / 4 }, (_, i) => `v${i}`);
  for (let i = 0; i < 4; i++) expect((await near().run('RPUSH', list, ...batch)).status).toBe(200);
});

afterAll(async () => {
  await near().run('DEL', list);
  await gateway.stop();
  await relay.stop();
});

test('what one token sends at once that takes Redis long does not keep it from others, nor for long from the same', async () => {
  const body = JSON.stringify(['LRANGE', list, 0, -1]);
  const request = (connection: string) =>
    `POST /kv HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nAuthorization: Bearer ${TOKENS.kv}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const statuses: string[] = [];
  const given = () => statuses.filter((status) => status === '200').length;
  let open = CONNECTIONS;
  for (let i = 0; i < CONNECTIONS; i++) {
    const client = await RawClient.open(Number(new URL(gateway.url).port));
    client.socket.removeAllListeners('data').on('data', (text: string) => {
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) statuses.push(status as string);
    });
    client.socket.once('close', () => {
      open -= 1;
    });
    client.write(request('keep-alive').repeat(FLOOD / CONNECTIONS - 1) + request('close'));
  }
  await eventually(() => expect(statuses.length).toBeGreaterThan(0));
  const other = kvCaller(`${gateway.url}/kv`, TOKENS.kvReadOnly);
  let asked = 0;
  for (const end = performance.now() + HANGS_MS; open > 0 && performance.now() < end; asked++) {
    const before = given();
    const [read, written] = await Promise.all([other.run('GET', 'none'), near().run('DEL', 'none')]);
    expect([read.status, written.status]).toEqual([200, 200]);
    expect(given() - before).toBeLessThan(MAY_COME_FIRST);
  }
  expect(open).toBe(0);
  expect(asked).toBeGreaterThan(0);
  // 504: what the first of them kept waiting in Redis for too long, on a slow machine
  expect(statuses.filter((status) => !['200', '503', '504'].includes(status))).toEqual([]);
  expect(statuses).toHaveLength(FLOOD);
  await eventually(async () => expect((await near().run('LRANGE', list, 0, 1)).status).toBe(200));
});

test('a Redis that is far gets as many at once as it takes', async () => {
  const caller = far();
  await eventually(async () => expect((await caller.run('PING')).status).toBe(200));
  const begun = performance.now();
  const rounds = Array.from({ length: 64 }, async () => {
    for (let i = 0; i < 10; i++)
      await eventually(async () => expect((await caller.run('LRANGE', list, 0, 1)).status).toBe(200));
  });
  await Promise.all(rounds);
  // one after the other they take 32 s, two at a time 16
  expect(performance.now() - begun).toBeLessThan(12_000);
});
