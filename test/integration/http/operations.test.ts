import { HttpError } from '../../../src/http/errors.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { startHttpCore } from '../../support/http-instance.js';

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
  const core = await startHttpCore({}, { backends });
  const get = async (path: string) => {
    const reply = await fetch(`${core.url}${path}`);
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
  };
  expect(await get('/livez')).toEqual({ status: 200, body: { status: 'ok' } });
  const both = await Promise.all([get('/readyz'), get('/readyz'), get('/readyz/test')]);
  for (const { status, body } of both) {
    expect(status).toBe(200);
    expect(body).toEqual({ status: 'ready', services: { test: { default: { up: true } } } });
  }
  expect(checks).toBe(1);
  expect((await get('/readyz/nope')).status).toBe(404);
  expect((await fetch(`${core.url}/readyz`, { method: 'POST' })).status).toBe(405);

  failure = Object.assign(new Error('connect ECONNREFUSED redis://user:password@host'), {
    code: 'ECONNREFUSED',
  });
  await eventually(async () =>
    expect(await get('/readyz')).toEqual({
      status: 503,
      body: {
        status: 'degraded',
        services: { test: { default: { up: false, reason: 'redis: does not answer (ECONNREFUSED)' } } },
      },
    }),
  );
  const metrics = await (await fetch(`${core.url}/metrics`)).text();
  expect(metrics).toMatch(/portico_backend_up\{service="test",instance="default",backend="redis"\} 0/);
  expect(metrics).toMatch(/portico_http_requests_in_flight \d/);
  core.core.beginStop();
  expect((await get('/readyz')).body.status).toBe('stopping');
  await core.stop();
});

it('counts a backend that does not answer in time as down, with the reason it gives itself otherwise', async () => {
  const core = await startHttpCore(
    {},
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
  const reply = await fetch(`${core.url}/readyz`);
  expect(performance.now() - started).toBeLessThan(PROMPT_MS);
  expect(await reply.json()).toMatchObject({
    services: {
      test: { default: { up: false, reason: 'postgres: no answer within 1500 ms; rabbitmq: not installed' } },
    },
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
