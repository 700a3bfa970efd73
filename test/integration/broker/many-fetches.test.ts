import { readFileSync } from 'node:fs';
import { brokerClient, type KafkaNamespace, kafkaNamespace } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';
import { RawClient } from '../../support/raw-client.js';
import { type SpawnedGateway, spawnGateway } from '../../support/spawned-gateway.js';
import { TOKENS } from '../../support/tokens.js';

const CONNECTIONS = 8;
const REQUESTS = 150;
/** 1,200 replies of 1 MiB and more, all at once, took 1,000; in turns it is 190. */
const MEMORY_MIB = 400;
const PASSWORD = 'a-password-of-many-fetches-0123456789';

let kafka: KafkaNamespace;
let gateway: SpawnedGateway;

beforeAll(async () => {
  kafka = await kafkaNamespace();
  const { username, password } = TOKENS;
  const users = [
    { username, password },
    { username: 'other', password: PASSWORD },
  ];
  gateway = await spawnGateway({ broker: { clusters: [{ users }] } });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});

afterAll(async () => {
  await gateway?.stop();
  await kafka?.dispose();
});

const mostMiB = () =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${gateway.process.pid}/status`, 'utf8'))?.[1]) / 1024;

test('a thousand fetches that one user sends at once take little memory, and hold up nobody else', async () => {
  const [large, small] = [await kafka.topic('large'), await kafka.topic('small')];
  const call = brokerClient(gateway.url);
  const records = Array.from({ length: 10_000 }, (_, i) => ({ value: `${i} ${'x'.repeat(100)}` }));
  expect((await call(`/produce/${large}`, records)).status).toBe(200);
  expect((await call(`/produce/${small}`, { value: 'x' })).status).toBe(200);
  const other = brokerClient(gateway.url, { username: 'other', password: PASSWORD });
  const askOther = () => other('/fetch', { topic: small, partition: 0, offset: 0 });
  expect((await askOther()).status).toBe(200);

  const before = mostMiB();
  const body = JSON.stringify({ topic: large, partition: 0, offset: 0 });
  const login = Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64');
  const request = (connection: string) =>
    `POST /broker/fetch HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nAuthorization: Basic ${login}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  let over = 0;
  const all = Array.from({ length: CONNECTIONS }, async () => {
    const { socket } = await RawClient.open(Number(new URL(gateway.url).port));
    const statuses: string[] = [];
    let rest = '';
    // not kept: it is a gigabyte
    socket.removeAllListeners('data').on('data', (text: string) => {
      const lines = (rest + text).split('HTTP/1.1 ');
      statuses.push(...lines.slice(1).map((line) => line.slice(0, 3)));
      rest = (rest + text).slice(-8).replace('HTTP/1.1', '');
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(request('keep-alive').repeat(REQUESTS - 1) + request('close'));
    await closed;
    over += 1;
    return statuses;
  });
  let asked = 0;
  while (over < CONNECTIONS) {
    expect((await askOther()).status).toBe(200);
    asked += 1;
  }
  expect(asked).toBeGreaterThan(5);
  const statuses = (await Promise.all(all)).flat();
  expect(statuses.filter((status) => status === '200').length).toBeGreaterThan(10);
  // 504: those that had begun when a slow machine had no time for them
  expect(statuses.filter((status) => !['200', '503', '504'].includes(status))).toEqual([]);
  expect(mostMiB() - before).toBeLessThan(MEMORY_MIB);
});
