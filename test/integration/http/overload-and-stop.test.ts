import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';
import { RawClient } from '../../support/raw-client.js';

const AUTH = { authorization: `Bearer ${TOKEN}` };

it('answers 503 with Retry-After above the limit of requests in flight, and recovers', async () => {
  const core = await startHttpCore({ maxInFlight: 2 }, { timeoutMs: 60_000 });
  const call = (path: string) => fetch(`${core.url}${path}`, { method: 'POST', headers: AUTH });
  const busy = [call('/test/wait/4000'), call('/test/wait/4000')];
  await eventually(() => expect(core.core.inFlight).toBe(2));
  const refused = await call('/test/wait/1');
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({ code: 'overloaded' });
  for (const reply of await Promise.all(busy)) expect(reply.status).toBe(200);
  expect((await call('/test/wait/1')).status).toBe(200);
  await core.stop();
});

it('drops no request when it stops under load, and asks clients to close', async () => {
  const core = await startHttpCore();
  const outcomes: string[] = [];
  let stopped = false;
  const client = async () => {
    while (!stopped) {
      try {
        const reply = await fetch(`${core.url}/test/wait/5`, { method: 'POST', headers: AUTH });
        await reply.json();
        outcomes.push(String(reply.status));
      } catch (error) {
        const cause = (error as { cause?: { code?: string } }).cause;
        outcomes.push(cause?.code ?? String(error));
        return;
      }
    }
  };
  const clients = Array.from({ length: 20 }, client);
  await eventually(() => expect(outcomes.length).toBeGreaterThan(200));
  core.core.beginStop();
  const started = performance.now();
  await core.stop();
  expect(performance.now() - started).toBeLessThan(PROMPT_MS);
  stopped = true;
  await Promise.all(clients);
  // what reached a handler was answered; a client whose new connection the closing port no longer took, or on which no
  // byte had come when idle ones were closed, was refused
  expect(outcomes.filter((outcome) => outcome === '200')).toHaveLength(core.seen.waits);
  const refusals = outcomes.filter((outcome) => outcome !== '200');
  expect(refusals.length).toBeLessThanOrEqual(clients.length);
  for (const refusal of refusals) expect(['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET']).toContain(refusal);
});

it('is not held up by a connection on which nothing was ever sent', async () => {
  const core = await startHttpCore();
  const silent = await RawClient.open(core.port);
  const startedAt = performance.now();
  await core.stop();
  expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
  await silent.closed();
});

it('closes idle connections at once and lets a running request end', async () => {
  const core = await startHttpCore({}, { timeoutMs: 60_000 });
  const idle = await RawClient.open(core.port);
  const running = fetch(`${core.url}/test/wait/3000`, { method: 'POST', headers: AUTH });
  await eventually(() => expect(core.core.inFlight).toBe(1));
  core.core.beginStop();
  const stop = core.stop();
  const order: string[] = [];
  await Promise.all([
    idle.closed().then(() => order.push('idle')),
    running.then(() => order.push('running')),
  ]);
  expect(order).toEqual(['idle', 'running']);
  const reply = await running;
  expect(reply.status).toBe(200);
  expect(reply.headers.get('connection')).toBe('close');
  await stop;
});

it('answers a request that was on its way on a kept connection when the stop began', async () => {
  const core = await startHttpCore();
  const request = `GET /test/raw/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
  const kept = await RawClient.open(core.port);
  kept.write(request);
  await kept.until(/size/);
  core.core.beginStop();
  const stop = core.stop();
  kept.write(request);
  const all = await kept.closed();
  expect(all.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(all).toMatch(/Connection: close/i);
  await stop;
});
