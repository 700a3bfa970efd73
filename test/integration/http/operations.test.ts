import { HttpError } from '../../../src/http/errors.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startHttpCore } from '../../support/http-instance.js';
import { operatorPage } from '../../support/operator.js';
import { TOKENS } from '../../support/tokens.js';

it('tells live, ready and why not, per service, and asks each backend at most once a second', async () => {
  let checks = 0;
  let failure: Error | undefined;
  const backends = [
    {
      name: 'redis',
      check: async () => {
        checks += 1;
        if (failure !== undefined) throw failure;
      },
    },
  ];
  const core = await startHttpCore({ metricsToken: TOKENS.metrics }, { backends });
  const get = async (path: string) => {
    const reply = await fetch(`${core.url}${path}`);
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
  };
  const asOperator = async (path: string) => {
    const { status, text } = await operatorPage(core.url, path);
    return { status, body: JSON.parse(text) as Record<string, unknown> };
  };
  expect(await get('/livez')).toEqual({ status: 200, body: { status: 'ok' } });
  const both = await Promise.all([get('/readyz'), get('/readyz'), get('/readyz/test')]);
  for (const { status, body } of both) {
    expect(status).toBe(200);
    expect(body).toEqual({ status: 'up', services: { test: { status: 'up' } } });
  }
  const instances = { default: { status: 'up' } };
  expect((await asOperator('/readyz')).body).toEqual({
    status: 'up',
    services: { test: { status: 'up', instances } },
  });
  expect(checks).toBe(1);
  expect((await get('/readyz/nope')).status).toBe(404);
  expect((await fetch(`${core.url}/readyz`, { method: 'POST' })).status).toBe(405);

  failure = Object.assign(new Error('connect ECONNREFUSED redis://user:password@host'), {
    code: 'ECONNREFUSED',
  });
  const down = { status: 503, body: { status: 'down', services: { test: { status: 'down' } } } };
  await eventually(async () => expect(await get('/readyz')).toEqual(down));
  expect(await get('/readyz/test')).toEqual(down);
  const wrongToken = await fetch(`${core.url}/readyz`, { headers: { authorization: 'Bearer wrong' } });
  expect(await wrongToken.json()).toEqual(down.body);
  const reason = 'redis: does not answer (ECONNREFUSED)';
  const why = { status: 'down', instances: { default: { status: 'down', reason } } };
  expect(await asOperator('/readyz/test')).toEqual({
    status: 503,
    body: { status: 'down', services: { test: why } },
  });
  const metrics = (await operatorPage(core.url, '/metrics')).text;
  expect(metrics).toMatch(/portico_backend_up\{service="test",instance="default",backend="redis"\} 0/);
  expect(metrics).toMatch(/portico_http_requests_in_flight \d/);
  core.core.beginStop();
  failure = undefined;
  expect(await get('/readyz')).toMatchObject({ status: 503, body: { status: 'down' } });
  await core.stop();
});

it('counts a backend that does not answer in time as down, with the reason it gives itself otherwise', async () => {
  const core = await startHttpCore(
    { metricsToken: TOKENS.metrics },
    {
      backends: [
        { name: 'postgres', check: () => new Promise(() => undefined) },
        {
          name: 'rabbitmq',
          check: () => Promise.reject(new HttpError('backend_unavailable', 'not installed')),
        },
      ],
    },
  );
  const started = performance.now();
  const { text } = await operatorPage(core.url, '/readyz');
  expect(performance.now() - started).toBeLessThan(PROMPT_MS);
  const reason = 'postgres: no answer within 1500 ms; rabbitmq: not installed';
  expect(JSON.parse(text)).toMatchObject({
    services: { test: { instances: { default: { status: 'down', reason } } } },
  });
  await core.stop();
});

it('asks for the metrics token when one is configured', async () => {
  const core = await startHttpCore({ metricsToken: 'a-metrics-token' });
  expect((await fetch(`${core.url}/metrics`)).status).toBe(401);
  const reply = await fetch(`${core.url}/metrics`, { headers: { authorization: 'Bearer a-metrics-token' } });
  expect(reply.status).toBe(200);
  expect(await reply.text()).toContain('process_cpu_seconds_total');
  await core.stop();
});

it('refuses the metrics without a token where others can reach them, and gives nobody a reason', async () => {
  const backends = [{ name: 'redis', check: () => Promise.reject(new Error('connect ECONNREFUSED')) }];
  const core = await startHttpCore({ host: '0.0.0.0' }, { backends });
  expect((await fetch(`${core.url}/metrics`)).status).toBe(401);
  const own = await startHttpCore({ host: '0.0.0.0', operationsPort: 8_071 });
  expect((await fetch(`${own.url}/metrics`)).status).toBe(200);
  for (const headers of [{}, { authorization: 'Bearer null' }, { authorization: 'Bearer ' }]) {
    const reply = await fetch(`${core.url}/readyz`, { headers });
    expect(await reply.text()).toBe('{"status":"down","services":{"test":{"status":"down"}}}');
  }
  await Promise.all([core.stop(), own.stop()]);
});

it('describes itself to this machine, to operators, and on their port', async () => {
  const statuses = async (settings: Record<string, unknown>) => {
    const core = await startHttpCore(settings);
    const replies = [
      (await fetch(`${core.url}/openapi.json`)).status,
      (await operatorPage(core.url, '/openapi.json')).status,
    ];
    await core.stop();
    return replies;
  };
  const host = '0.0.0.0';
  const metricsToken = TOKENS.metrics;
  expect(await statuses({ metricsToken })).toEqual([200, 200]);
  expect(await statuses({ host, metricsToken })).toEqual([401, 200]);
  expect(await statuses({ host })).toEqual([401, 401]);
  expect(await statuses({ host, operationsPort: 8_071 })).toEqual([200, 200]);
});

it('tells the reasons on the port of operations, unless there is a token', async () => {
  const backends = [{ name: 'redis', check: () => Promise.reject(new HttpError('timeout', 'too slow')) }];
  const open = await startHttpCore({ operationsPort: 8_071 }, { backends });
  expect(await (await fetch(`${open.url}/readyz`)).text()).toContain('redis: too slow');
  const closed = await startHttpCore({ operationsPort: 8_071, metricsToken: TOKENS.metrics }, { backends });
  expect(await (await fetch(`${closed.url}/readyz`)).text()).not.toContain('redis');
  await Promise.all([open.stop(), closed.stop()]);
});
