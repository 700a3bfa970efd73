import { gunzipSync, gzipSync } from 'node:zlib';
import { openapiDocument } from '../../src/http/operations/openapi.js';
import { defaultServers, serversOf } from '../../src/http/operations/openapi-servers.js';
import { staticFile, staticReply } from '../../src/http/operations/static-files.js';
import { httpSettings } from '../../src/http/settings.js';
import { wholly } from '../../src/lib/slices.js';
import { describeServices } from '../../src/services/describe.js';
import { services } from '../../src/services/index.js';

interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly security?: readonly Record<string, unknown>[];
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly example?: unknown }[];
  readonly requestBody?: { readonly content: Record<string, { readonly example?: unknown }> };
  readonly responses: Record<string, { readonly content?: Record<string, { readonly example?: unknown }> }>;
}

interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly securitySchemes: Record<string, unknown> };
}

const document = JSON.parse(
  JSON.stringify(wholly(openapiDocument(describeServices(), '1.0.0', defaultServers()))),
) as Document;

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.values(methods).map((operation) => [operation.operationId, { path, operation }] as const),
);

it('has every operation once, and no two paths that differ by the names of their parameters alone', () => {
  const ids = operations.map(([id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const shapes = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
  expect(shapes.filter((shape, i) => shapes.indexOf(shape) !== i)).toEqual([]);
  const shown = services.flatMap(({ routes }) =>
    routes.filter(({ isUndocumented }) => isUndocumented !== true),
  );
  expect(ids.filter((id) => !id.startsWith('operations.')).sort()).toEqual(
    shown.map(({ operationId }) => operationId).sort(),
  );
});

it('hides a route only where another shows the same, or nobody should call it', () => {
  const hidden = services.flatMap(({ routes }) => routes.filter((route) => route.isUndocumented));
  expect(hidden.map(({ operationId }) => operationId)).toEqual([
    'vector.deleteDefaultNamespace',
    'queue.createGroupSchedule',
  ]);
});

it.each(operations)('%s says what it does, for whom, and shows a call', (_id, { operation }) => {
  const { summary = '', description, security, parameters, requestBody, responses } = operation;
  expect(summary).toMatch(/^.{5,160}$/);
  expect(description).toBeTruthy();
  for (const scheme of (security ?? [{ none: [] }]).flatMap((each) => Object.keys(each)))
    expect(Object.keys(document.components.securitySchemes)).toContain(scheme);
  for (const parameter of parameters)
    if (parameter.in === 'path') expect(parameter).toMatchObject({ example: expect.anything() });
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
  expect(Object.values(success?.content ?? {})[0]).toHaveProperty('example');
  if (requestBody !== undefined && !/\.(kv\.path|vector\.reset)/.test(`.${operation.operationId}`))
    expect(requestBody.content['application/json']).toHaveProperty('example');
});

describe.each(services)('$name', ({ routes, documentation }) => {
  const idsOf = routes.map(({ operationId }) => operationId);

  it.each(Object.entries(documentation.examples))(
    '%s has an example that its schemas take',
    (id, example) => {
      const route = routes.find(({ operationId }) => operationId === id);
      const { query, headers, body } = route?.request ?? {};
      if (example.body !== undefined) expect(body?.safeParse(example.body)).toMatchObject({ success: true });
      if (example.query !== undefined)
        expect(query?.safeParse(example.query)).toMatchObject({ success: true });
      if (example.headers !== undefined)
        expect(headers?.safeParse(example.headers)).toMatchObject({ success: true });
      expect(route?.reply.safeParse(example.reply)).toMatchObject({ success: true });
    },
  );

  it('has no example of what is not there', () => {
    expect(Object.keys(documentation.examples).filter((id) => !idsOf.includes(id))).toEqual([]);
  });
});

it('names the servers as they are configured, whatever stands before the gateway', () => {
  const urls = (settings: object) => serversOf(httpSettings.parse(settings)).map(({ url }) => url);
  expect(urls({})).toEqual(['/', 'http://127.0.0.1:8070']);
  expect(urls({ host: '0.0.0.0', port: 80 })).toEqual(['/', 'http://127.0.0.1:80']);
  expect(urls({ host: '::1' })).toEqual(['/', 'http://[::1]:8070']);
  expect(urls({ operationsPort: 9_000 })).toEqual(['http://127.0.0.1:8070']);
  const plain = httpSettings.parse({});
  const secure = { ...plain, tls: { ...plain.tls, cert: 'cert.pem', key: 'key.pem' } };
  expect(serversOf(secure)[1]?.url).toBe('https://127.0.0.1:8070');
  expect(document.servers.map(({ url }) => url)).toEqual(['http://127.0.0.1:8070']);
});

describe('a static file', () => {
  const text = 'hello '.repeat(1_000);
  const get = async (headers: Record<string, string>) =>
    staticReply(await staticFile('text/plain', text), { headers });

  it('goes out packed as the client asks for it, and as it is to one that does not ask', async () => {
    expect(await get({})).toMatchObject({ status: 200, body: Buffer.from(text) });
    const gzipped = await get({ 'accept-encoding': 'gzip;q=0.5' });
    expect(gzipped.headers).toMatchObject({ 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' });
    expect(gunzipSync(gzipped.body).toString()).toBe(text);
    expect((await get({ 'accept-encoding': 'gzip, br' })).headers['Content-Encoding']).toBe('br');
    expect((await get({ 'accept-encoding': '*' })).headers['Content-Encoding']).toBe('br');
    expect((await get({ 'accept-encoding': 'br;q=0, gzip' })).headers['Content-Encoding']).toBe('gzip');
    expect((await get({ 'accept-encoding': 'identity' })).headers).not.toHaveProperty('Content-Encoding');
  });

  it('is not sent again to one that has it', async () => {
    const { headers } = await get({ 'accept-encoding': 'gzip' });
    const again = await get({ 'accept-encoding': 'gzip', 'if-none-match': `W/${headers.ETag}` });
    expect(again).toMatchObject({ status: 304, body: Buffer.alloc(0) });
    // another coding is another representation
    expect(await get({ 'if-none-match': headers.ETag as string })).toMatchObject({ status: 200 });
  });
});

it('is smaller than 250 kB on the wire', () => {
  expect(gzipSync(JSON.stringify(document)).length).toBeLessThan(250_000);
});
