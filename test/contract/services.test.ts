import { readFileSync } from 'node:fs';
import { adminDocumentation } from '../../src/access/documented.js';
import { settingsTable } from '../../src/config/settings-table.js';
import { describeConsole } from '../../src/console/describe.js';
import { HttpError } from '../../src/http/errors.js';
import { openapiDocument } from '../../src/http/operations/openapi.js';
import { defaultServers } from '../../src/http/operations/openapi-servers.js';
import { wholly } from '../../src/lib/slices.js';
import { cardsOfServices, describeServices } from '../../src/services/describe.js';
import { services } from '../../src/services/index.js';
import { eventually, PROMPT_MS } from '../support/eventually.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { OPERATOR_VARIABLES, operatorPage } from '../support/operator.js';
import { removeQueueService } from '../support/queue/queue-cleanup.js';
import { RawClient } from '../support/raw-client.js';
import { startRelays } from '../support/relayed-backends.js';
import { authorizationOf } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

afterAll(async () => {
  await dropSchema('contract_vector');
  await removeQueueService('contract_queue', 'contract');
});

/** Addresses at which nothing listens. */
const NOWHERE = {
  PORTICO_REDIS_URL: 'redis://127.0.0.1:1',
  PORTICO_DATABASE_URL: 'postgres://nobody:nothing@127.0.0.1:1/nothing',
  PORTICO_KAFKA_BROKERS: '127.0.0.1:1',
  PORTICO_RABBITMQ_URL: 'amqp://nobody:nothing@127.0.0.1:1',
};

const document = JSON.parse(readFileSync('config/openapi.json', 'utf8')) as {
  paths: Record<string, Record<string, { operationId: string }>>;
};

it('lists services under names of their own', () => {
  expect(services.length).toBeGreaterThanOrEqual(4);
  expect(new Set(services.map(({ name }) => name)).size).toBe(services.length);
});

it('has every route in config/openapi.json, which is what `npm run docs` writes', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(document).toEqual(
    JSON.parse(
      JSON.stringify(
        wholly(
          openapiDocument(
            [...describeServices(), adminDocumentation, describeConsole()],
            version,
            defaultServers(),
          ),
        ),
      ),
    ),
  );
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

it('knows of every queue route that is no GET that it changes data: 403 for a token that may only read', () => {
  const queue = services.find(({ name }) => name === 'queue');
  const unmarked = queue?.routes.filter(
    ({ methods, changesData }) => (changesData === true) !== methods.some((method) => method !== 'GET'),
  );
  expect(unmarked?.map(({ operationId }) => operationId)).toEqual([]);
});

it('has the table of settings in docs/configuration.md, which is what `npm run docs` writes', () => {
  expect(readFileSync('docs/configuration.md', 'utf8')).toContain(settingsTable());
});

it("has every service's card in compose/state/services.json, which is what `npm run docs` writes", () => {
  expect(readFileSync('compose/state/services.json', 'utf8')).toBe(cardsOfServices());
});

it("has every service's credentials in the image for tests and in compose.yaml, as `npm run docs` writes them", () => {
  const tokens = readFileSync('compose/docker/test-tokens.env', 'utf8').split('\n').slice(1);
  const credentials = services.flatMap(({ card }) => card.credentials);
  expect(tokens).toEqual([...credentials.map(({ variable, inTests }) => `${variable}=${inTests}`), '']);
  const [, given = ''] = readFileSync('compose/compose.yaml', 'utf8').split(
    '# of the services: npm run docs',
  );
  const variables = services.flatMap(({ card }) => [
    ...card.credentials.map(({ variable }) => variable),
    ...Object.keys(card.variables),
  ]);
  expect([...given.matchAll(/^ {6}(PORTICO_\w+): /gm)].map(([, name]) => name)).toEqual(variables);
});

it('has no dangling reference in config/openapi.json', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
    ([, path]) => path as string,
  );
  expect(references.length).toBeGreaterThan(50);
  for (const reference of references) {
    const found = reference
      .split('/')
      .reduce<unknown>((value, step) => (value as Record<string, unknown>)?.[step], document);
    expect({ reference, found: typeof found }).toEqual({ reference, found: 'object' });
  }
});

describe.each(services.map((service) => [service.name, service] as const))('%s', (name, service) => {
  const { request, takesBody, apart, limited } = service.probe;
  const probe = { ...request, path: `/${name}${request.path}`, authorization: authorizationOf(service) };
  const send = (
    gateway: RunningGateway,
    change: { path?: string; method?: string; authorization?: string; body?: string } = {},
  ) => {
    const { path, method, authorization, body } = { ...probe, ...change };
    return fetch(`${gateway.url}${path}`, {
      method,
      headers: authorization === '' ? {} : { authorization },
      ...(body === undefined || method === 'GET' ? {} : { body }),
    });
  };
  const expectError = async (reply: Response, status: number) => {
    expect(reply.headers.get('content-type')).toContain('application/json');
    const body: unknown = await reply.json();
    expect(service.error.safeParse(body)).toMatchObject({ success: true });
    expect({ status: reply.status, body }).toMatchObject({ status });
  };

  describe('with its backend', () => {
    let gateway: RunningGateway;
    beforeAll(async () => {
      gateway = await startGateway({ [name]: apart });
    });
    afterAll(() => gateway.stop());

    it('refuses missing and wrong credentials before anything else, in its own error shape', async () => {
      await expectError(await send(gateway, { authorization: '' }), 401);
      await expectError(await send(gateway, { authorization: 'Bearer wrong' }), 401);
      await expectError(await send(gateway, { authorization: 'Basic d3Jvbmc6d3Jvbmc=' }), 401);
      await expectError(
        await send(gateway, { authorization: '', path: `${probe.path}/none`, method: 'PATCH' }),
        401,
      );
    });

    it('lets no cache keep a reply, whatever it is', async () => {
      const replies = await Promise.all([
        send(gateway),
        send(gateway, { authorization: '' }),
        send(gateway, { method: 'PATCH', body: 'x' }),
        send(gateway, { path: '/elsewhere' }),
        fetch(`${gateway.url}/readyz`),
        fetch(`${gateway.url}/metrics`),
      ]);
      for (const reply of replies) expect(reply.headers.get('cache-control')).toBe('no-store');
    });

    it('words in its own shape what is outside its path, and what is no request', async () => {
      await expectError(await send(gateway, { path: '/elsewhere' }), 404);
      await expectError(await send(gateway, { path: '/', authorization: '' }), 404);
      const head = `POST ${probe.path} HTTP/1.1\r\n`;
      for (const [bytes, status] of [
        [`${head}Host: x\r\nExpect: the-unexpected\r\n\r\n`, 417],
        [`${head}\r\n`, 400],
        [`${head}Host: x\r\nno header\r\n\r\n`, 400],
        ['NONSENSE\r\n\r\n', 400],
        [`${head}Host: x\r\nX-Long: ${'x'.repeat(300_000)}\r\n\r\n`, 431],
      ] as const) {
        const client = await RawClient.open(Number(new URL(gateway.url).port));
        client.write(bytes);
        const text = await client.until(/\r\n\r\n\{.*\}$/);
        client.end();
        expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
        expect(text).toMatch(/\r\nCache-Control: no-store\r\n/i);
        const body: unknown = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
        expect(service.error.safeParse(body)).toMatchObject({ success: true });
        expect(Object.keys(body as object).sort()).toEqual(Object.keys(ownError(service)).sort());
      }
    });

    it('refuses a method that no route takes with 405 and Allow', async () => {
      const reply = await send(gateway, { method: 'PATCH', body: 'x' });
      expect(reply.headers.get('allow')).toMatch(/[A-Z]/);
      await expectError(reply, 405);
    });

    it('refuses a body over its limit with 413', async () => {
      const small = await startGateway({ [name]: limited });
      await expectError(
        await send(small, { path: `/${name}${takesBody}`, method: 'POST', body: 'x'.repeat(70_000) }),
        413,
      );
      await small.stop();
    });

    it('is told of by /readyz, /metrics and by its operation id', async () => {
      await eventually(async () => {
        const ready = (await (await fetch(`${gateway.url}/readyz/${name}`)).json()) as { services: object };
        expect(ready).toEqual({ status: 'up', services: { [name]: { status: 'up' } } });
      });
      expect((await send(gateway)).status).toBeLessThan(500);
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      expect(metrics).toMatch(new RegExp(`portico_backend_up\\{service="${name}",[^}]*\\} 1`));
      expect(metrics).toMatch(new RegExp(`request_duration_seconds_count\\{operation="${name}\\.[a-z]`));
    });

    it('documents every route', () => {
      const ids = Object.values(document.paths).flatMap((path) =>
        Object.values(path).map(({ operationId }) => operationId),
      );
      for (const route of service.routes) {
        expect(route.summary).toMatch(/\.$/);
        if (route.isUndocumented !== true) expect(ids).toContain(route.operationId);
      }
    });
  });

  const withBackend = service.card.needs.length > 0 ? it : it.skip;

  withBackend(
    'answers 503 with Retry-After within two seconds where its backend is not there, and starts all the same',
    async () => {
      const gateway = await startGateway({ [name]: apart }, NOWHERE);
      const started = performance.now();
      const reply = await send(gateway);
      expect(performance.now() - started).toBeLessThan(PROMPT_MS);
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      await expectError(reply, 503);
      const ready = await fetch(`${gateway.url}/readyz`);
      expect(ready.status).toBe(503);
      expect(await ready.json()).toEqual({ status: 'down', services: { [name]: { status: 'down' } } });
      expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
      await gateway.stop();
    },
  );

  withBackend(
    'joins when its backend comes, and only operators hear why it was not there',
    async () => {
      const relays = await startRelays();
      const section = { ...apart, missing: 'no package of that name' };
      const gateway = await startGateway({ [name]: section }, { ...relays.addresses, ...OPERATOR_VARIABLES });
      const reply = await send(gateway);
      expect(await reply.clone().text()).not.toContain('package');
      await expectError(reply, 503);
      expect(await (await fetch(`${gateway.url}/readyz`)).text()).not.toContain('package');
      expect((await operatorPage(gateway.url, '/readyz')).text).toContain('no package of that name');
      relays.open();
      const ready = await eventually(async () => {
        const page = await operatorPage(gateway.url, `/readyz/${name}`);
        expect(page.status).toBe(200);
        return page;
      }, 20_000);
      expect(ready.text).not.toContain('package');
      expect((await send(gateway)).status).toBeLessThan(500);
      await gateway.stop();
      await relays.stop();
    },
    40_000,
  );

  it('is not there when it is switched off', async () => {
    const gateway = await startGateway({ [name]: { enabled: false } });
    expect((await send(gateway)).status).toBe(404);
    await gateway.stop();
  });
});

/** An error as the contract of `service` words it. */
const ownError = (service: (typeof services)[number]) =>
  service.formatError(new HttpError('not_found')) as object;

describe('several services on one port', () => {
  const both = services.filter(({ name }) => name === 'kv' || name === 'vector');
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway(Object.fromEntries(both.map(({ name, probe: { apart } }) => [name, apart])));
  });
  afterAll(() => gateway.stop());

  it.each(both)(
    'words what is outside of all paths as the contract does whose token came: $name',
    async (service) => {
      const authorization = authorizationOf(service);
      const reply = await fetch(`${gateway.url}/elsewhere`, { headers: { authorization } });
      expect(reply.status).toBe(404);
      expect(await reply.json()).toEqual(ownError(service));
      expect(await (await fetch(`${gateway.url}/elsewhere`)).json()).toEqual({
        error: 'There is nothing at this path.',
        status: 404,
      });
    },
  );

  it.each(both)(
    'words what is no request below a path as its contract does: $name',
    async ({ name, formatError }) => {
      const client = await RawClient.open(Number(new URL(gateway.url).port));
      client.write(`GET /${name}/x HTTP/1.1\r\nno header\r\n\r\n`);
      const text = await client.closed();
      expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toEqual(
        formatError(new HttpError('invalid_request')),
      );
    },
  );
});
