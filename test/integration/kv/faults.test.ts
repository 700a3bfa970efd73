import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { backend } from '../../support/backend.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { OPERATOR_VARIABLES, operatorPage } from '../../support/operator.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `kv-faults:${randomBytes(4).toString('hex')}:`;
/** Deadline of a request, in ms. */
const TIMEOUT_MS = 4_000;
const redis = backend('redis');
let gateway: RunningGateway;

async function run(command: readonly unknown[], url = gateway.url) {
  const startedAt = performance.now();
  const response = await fetch(`${url}/kv`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.kv}` },
    body: JSON.stringify(command),
  });
  const body = (await response.json()) as { result?: unknown; error?: string };
  return { status: response.status, body, headers: response.headers, ms: performance.now() - startedAt };
}

const recovered = () =>
  eventually(async () => expect((await run(['PING'])).body).toEqual({ result: 'PONG' }));

beforeAll(async () => {
  gateway = await startGateway({ kv: { databases: [{ timeoutMs: TIMEOUT_MS }] } });
  await recovered();
});

afterAll(async () => {
  await redis.resume().catch(() => undefined);
  await redis.start();
  await recovered();
  const { body } = await run(['KEYS', `${PREFIX}*`]);
  if ((body.result as string[]).length > 0) await run(['DEL', ...(body.result as string[])]);
  await gateway.stop();
});

test('Redis killed under load: every request is answered in time, and it recovers by itself', async () => {
  const counter = `${PREFIX}counter`;
  const statuses = new Map<number, number>();
  let stop = false;
  const clients = Array.from({ length: 20 }, async () => {
    while (!stop) {
      const { status, body, headers, ms } = await run(['INCR', counter]);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect(ms).toBeLessThan(TIMEOUT_MS + PROMPT_MS);
      if (status === 200) continue;
      expect([502, 503]).toContain(status);
      expect(body.error).toMatch(status === 503 ? /^ERR .*nothing was executed/ : /^ERR .*unknown/);
      // only what certainly did not run invites to try again
      expect(headers.get('retry-after') === null).toBe(status === 502);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
  await eventually(() => expect(statuses.get(200) ?? 0).toBeGreaterThan(200));
  await redis.kill();
  await eventually(() => expect(statuses.get(503) ?? 0).toBeGreaterThan(20));
  const before = statuses.get(200) ?? 0;
  await redis.start();
  await eventually(() => expect(statuses.get(200) ?? 0).toBeGreaterThan(before + 200));
  stop = true;
  await Promise.all(clients);
});

test('a connection cut under load: no command runs twice', async () => {
  const counter = `${PREFIX}cut`;
  const direct = new Redis(process.env.PORTICO_REDIS_URL as string);
  let acknowledged = 0;
  let unknown = 0;
  let stop = false;
  const clients = Array.from({ length: 30 }, async () => {
    while (!stop) {
      const { status } = await run(['INCR', counter]);
      if (status === 200) acknowledged += 1;
      else if (status === 502) unknown += 1;
      else expect(status).toBe(503);
    }
  });
  for (let cut = 1; cut <= 10; cut++) {
    await eventually(() => expect(acknowledged).toBeGreaterThan(cut * 50));
    await direct.call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES');
  }
  stop = true;
  await Promise.all(clients);
  await recovered();
  const count = Number(await direct.get(counter));
  direct.disconnect();
  expect(count).toBeGreaterThanOrEqual(acknowledged);
  expect(count).toBeLessThanOrEqual(acknowledged + unknown);
});

test('Redis stopped in its tracks: 504 within the deadline, then 503 at once, no command sent twice', async () => {
  const counter = `${PREFIX}paused`;
  expect((await run(['SET', counter, 0])).status).toBe(200);
  await redis.pause();
  try {
    const stalled = await Promise.all(Array.from({ length: 5 }, () => run(['INCR', counter])));
    for (const { status, body, ms } of stalled) {
      expect([502, 504]).toContain(status);
      expect(body.error).toMatch(/^ERR .*unknown/);
      expect(ms).toBeLessThan(TIMEOUT_MS + PROMPT_MS);
    }
    // the silent connection is given up: from now on nothing waits for it
    await eventually(async () => expect((await run(['PING'])).status).toBe(503));
    const refused = await run(['PING']);
    expect(refused.ms).toBeLessThan(TIMEOUT_MS / 2);
    const ready = await fetch(`${gateway.url}/readyz`);
    expect(ready.status).toBe(503);
  } finally {
    await redis.resume();
  }
  await recovered();
  expect(Number((await run(['GET', counter])).body.result)).toBeLessThanOrEqual(5);
});

test('Redis away at the start: 503 with Retry-After, and it joins when it comes', async () => {
  await redis.kill();
  const late = await startGateway({ kv: {} });
  try {
    const { status, body, headers, ms } = await run(['PING'], late.url);
    expect({ status, body }).toEqual({ status: 503, body: { error: expect.stringMatching(/^ERR /) } });
    expect(headers.get('retry-after')).toBe('1');
    expect(ms).toBeLessThan(PROMPT_MS);
    await redis.start();
    await eventually(async () => expect((await run(['PING'], late.url)).status).toBe(200));
  } finally {
    await late.stop();
  }
});

test('a wrong password is 503, and the reason shown holds no secret', async () => {
  const url = new URL(process.env.PORTICO_REDIS_URL as string);
  url.password = 'wrong-password-0123456789';
  const locked = await startGateway({ kv: {} }, { ...OPERATOR_VARIABLES, PORTICO_REDIS_URL: url.href });
  try {
    expect((await run(['PING'], locked.url)).status).toBe(503);
    const reason = await eventually(async () => {
      const { text } = await operatorPage(locked.url, '/readyz');
      expect(text).toContain('WRONGPASS');
      return text;
    });
    expect(reason).not.toContain('wrong-password');
  } finally {
    await locked.stop();
  }
});

test('commands by which Redis would close or block the shared connection do not reach it', async () => {
  for (const command of [['POST'], ['host:'], ['BLPOP', `${PREFIX}none`, '0']]) {
    const { status, body } = await run(command);
    expect({ status, body }).toEqual({
      status: 400,
      body: { error: expect.stringMatching(/not available/) },
    });
  }
  expect((await run(['PING'])).body).toEqual({ result: 'PONG' });
});

test('a database that Redis does not have is not replaced by database 0', async () => {
  const url = new URL(process.env.PORTICO_REDIS_URL as string);
  url.pathname = '/99';
  const lost = await startGateway({ kv: {} }, { PORTICO_REDIS_URL: url.href });
  try {
    expect((await run(['SET', `${PREFIX}lost`, 'x'], lost.url)).status).toBe(503);
    expect((await fetch(`${lost.url}/readyz/kv`)).status).toBe(503);
    expect((await run(['EXISTS', `${PREFIX}lost`])).body).toEqual({ result: 0 });
  } finally {
    await lost.stop();
  }
});

test('a connection that is accepted and never answers is given up for a new one', async () => {
  const url = new URL(process.env.PORTICO_REDIS_URL as string);
  const target = Number(url.port);
  let accepted = 0;
  const sockets = new Set<Socket>();
  const relay = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    accepted += 1;
    // the first one is a peer that has gone without a word
    if (accepted === 1) return socket.resume();
    const redisSocket = connect(target, '127.0.0.1').on('error', () => undefined);
    sockets.add(redisSocket);
    return socket.pipe(redisSocket).pipe(socket);
  });
  await once(relay.listen(0, '127.0.0.1'), 'listening');
  url.port = String((relay.address() as AddressInfo).port);
  const late = await startGateway(
    { kv: { databases: [{ connectTimeoutMs: 5_000 }] } },
    { PORTICO_REDIS_URL: url.href },
  );
  try {
    await eventually(async () => expect((await run(['PING'], late.url)).status).toBe(200));
    // three lanes, and the first of them once more
    expect(accepted).toBe(4);
  } finally {
    await late.stop();
    for (const socket of sockets) socket.destroy();
    relay.close();
  }
});

test('replies that are too large together are errors, and the commands after them go on', async () => {
  const limited = await startGateway({ kv: { databases: [{ replyLimit: 10_000 }] } });
  const key = `${PREFIX}large`;
  const send = async (path: string, rows: unknown) => {
    const headers = { authorization: `Bearer ${TOKENS.kv}` };
    const reply = await fetch(`${limited.url}/kv${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(rows),
    });
    return (await reply.json()) as { result?: unknown; error?: string }[];
  };
  try {
    const get = ['GET', key];
    const rows = await send('/pipeline', [['SET', key, 'x'.repeat(6_000)], get, get, get]);
    expect(rows.map(({ error }) => error === undefined)).toEqual([true, true, false, false]);
    expect(rows[2]?.error).toMatch(/^ERR the command ran, but .*10000 bytes/);
    const executed = { error: expect.stringMatching(/the command ran/) };
    expect(await send('/multi-exec', [get, get])).toEqual([executed, executed]);
    expect(await send('/pipeline', [get])).toEqual([{ result: 'x'.repeat(6_000) }]);
  } finally {
    await limited.stop();
  }
});
