import { existsSync } from 'node:fs';
import { eventually } from '../../support/eventually.js';
import { type SpawnedGateway, spawnGateway } from '../../support/spawned-gateway.js';

let gateway: SpawnedGateway;

beforeAll(async () => {
  gateway = await spawnGateway({ kv: { databases: [{ path: '/cache' }] } });
});
afterAll(async () => {
  expect(await gateway.stop()).toBe(0);
});

const get = (path: string, headers: Record<string, string> = {}) => fetch(gateway.url + path, { headers });

it('shows the API of this gateway: its services, where they are mounted', async () => {
  const document = (await (await get('/openapi.json')).json()) as {
    servers: { url: string }[];
    paths: Record<string, unknown>;
  };
  expect(document.servers[0]).toMatchObject({ url: '/' });
  expect(Object.keys(document.paths)).toContain('/cache/pipeline');
  expect(Object.keys(document.paths).filter((path) => path.startsWith('/queue'))).toEqual([]);
});

it('sends the document packed, and only to one that has not got it', async () => {
  const { headers } = await get('/openapi.json', { 'accept-encoding': 'gzip' });
  expect(headers.get('content-encoding')).toBe('gzip');
  const etag = headers.get('etag') as string;
  const again = await get('/openapi.json', { 'accept-encoding': 'gzip', 'if-none-match': etag });
  expect([again.status, await again.text()]).toEqual([304, '']);
});

it('has a page that loads its own scripts and nothing from elsewhere', async () => {
  const reply = await get('/docs');
  const page = await reply.text();
  const policy = reply.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self';");
  expect(policy).not.toMatch(/https?:|unsafe-eval/);
  expect(page).not.toMatch(/https?:\/\//);
  for (const [, source = ''] of page.matchAll(/<script src="([^"]+)"><\/script>/g)) {
    const script = await get(`/${source}`);
    expect([script.status, script.headers.get('content-type')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
    ]);
  }
  // inline scripts would be refused
  expect(page.replace(/<script src="[^"]+"><\/script>/g, '')).not.toContain('<script');
});

it('holds Scalar as the build has fetched it', async () => {
  expect(existsSync('dist/docs/scalar.js')).toBe(true);
  await eventually(async () => expect((await get('/docs/scalar.js')).status).toBe(200));
  const packed = await fetch(`${gateway.url}/docs/scalar.js`, { headers: { 'accept-encoding': 'gzip' } });
  expect(await packed.text()).toContain('createApiReference');
});

it('is not there for those from elsewhere, to whom the document is not open either', async () => {
  const open = await spawnGateway({
    http: { host: '0.0.0.0', metricsToken: 'a-token-of-more-than-24-characters-1' },
    kv: {},
  });
  const statuses = await Promise.all(
    ['/docs', '/docs/scalar.js', '/openapi.json'].map(async (path) => (await fetch(open.url + path)).status),
  );
  expect(await open.stop()).toBe(0);
  expect(statuses).toEqual([404, 404, 401]);
});
