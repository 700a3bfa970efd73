import { readdirSync } from 'node:fs';
import { startGateway } from '../../support/gateway.js';
import { type SpawnedGateway, spawnGateway } from '../../support/spawned-gateway.js';
import { TOKENS } from '../../support/tokens.js';

let gateway: SpawnedGateway;

beforeAll(async () => {
  gateway = await spawnGateway({ kv: {}, http: { metricsToken: TOKENS.metrics } });
});

afterAll(async () => {
  expect(await gateway.stop()).toBe(0);
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, { headers, redirect: 'manual' });

const post = (path: string, body: unknown, url = gateway.url) =>
  fetch(url + path, { method: 'POST', body: JSON.stringify(body) });

const access = async (authorization: string) =>
  (await (await get('/console/api/access', { authorization })).json()) as { unlocked: object[] };

describe('the page', () => {
  it('comes with a policy that lets nothing run that is not the gateway’s own, and is asked for anew', async () => {
    const page = await get('/console/');
    expect(page.status).toBe(200);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain('unsafe');
    expect(policy).not.toContain('http');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    const again = await get('/console/', { 'if-none-match': page.headers.get('etag') ?? '' });
    expect(again.status).toBe(304);
  });

  it('is found below any prefix: it names its parts and the gateway by relative addresses only', async () => {
    const redirect = await get('/console');
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, 'console/']);
    const text = await (await get('/console/')).text();
    const addresses = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address);
    expect(addresses.length).toBeGreaterThan(2);
    expect(addresses.filter((address) => !address?.startsWith('./'))).toEqual([]);
  });

  it('has parts that are packed, kept for good and the same once unpacked', async () => {
    const script = readdirSync('dist/console/assets').find((name) => /^index-.*\.js$/.test(name));
    const path = `/console/assets/${script}`;
    const packed = await get(path, { 'accept-encoding': 'br' });
    expect(packed.headers.get('content-encoding')).toBe('br');
    expect(packed.headers.get('cache-control')).toContain('immutable');
    const plain = await get(path, { 'accept-encoding': 'identity' });
    expect(plain.headers.get('content-encoding')).toBeNull();
    // fetch unpacks by itself
    expect(await packed.text()).toBe(await plain.text());
  });

  it.each([
    '/console/../../package.json',
    '/console/%2e%2e/main.js',
    '/console/assets',
    '/console/nothing.js',
  ])('is nothing beside its files: %s', async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  it('takes no other method', async () => {
    expect((await post('/console/', {})).status).toBe(405);
  });
});

describe('signing in', () => {
  it('says of credentials what they open, and for what', async () => {
    const kv = { service: 'kv', name: 'default', path: '/kv' };
    expect((await access(`Bearer ${TOKENS.kv}`)).unlocked).toEqual([
      { ...kv, access: 'full', principal: 'standard' },
    ]);
    expect((await access(`Bearer ${TOKENS.kvReadOnly}`)).unlocked).toEqual([
      { ...kv, access: 'read', principal: 'read-only' },
    ]);
    expect((await access('Bearer wrong')).unlocked).toEqual([]);
  });

  it.each([1, 2])('by a code once, and never again (%d processes)', async (workers) => {
    const other = workers === 1 ? gateway : await spawnGateway({ kv: {}, http: { workers } });
    const credentials = [`Bearer ${TOKENS.kv}`, 'Bearer wrong'];
    const made = await post('/console/api/codes', { credentials }, other.url);
    expect(made.status).toBe(201);
    const { code } = (await made.json()) as { code: string };
    const attempts = await Promise.all(
      Array.from({ length: 8 }, () => post('/console/api/sign-in', { code }, other.url)),
    );
    expect(attempts.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(401)]);
    const good = attempts.find(({ status }) => status === 200);
    expect(await good?.json()).toEqual({ credentials: [`Bearer ${TOKENS.kv}`] });
    if (other !== gateway) expect(await other.stop()).toBe(0);
  });

  it('makes no code for credentials that open nothing, and takes none that it did not make', async () => {
    expect((await post('/console/api/codes', { credentials: ['Bearer wrong'] })).status).toBe(401);
    expect((await post('/console/api/sign-in', { code: 'x'.repeat(43) })).status).toBe(401);
    expect((await post('/console/api/codes', { credentials: ['Digest x'] })).status).toBe(400);
  });

  it('makes a hundred codes at most at a time', async () => {
    const make = async () =>
      (await post('/console/api/codes', { credentials: [`Bearer ${TOKENS.kv}`] })).status;
    const statuses = [];
    for (let i = 0; i < 101; i += 1) statuses.push(await make());
    expect(statuses.at(-1)).toBe(429);
  });
});

describe('the overview', () => {
  const series = async (token: string) => get('/console/api/series', { authorization: `Bearer ${token}` });

  it('is for holders of credentials, each of whom sees his own services', async () => {
    expect((await series('wrong')).status).toBe(401);
    const [own, all] = await Promise.all(
      [TOKENS.kv, TOKENS.metrics].map(async (token) =>
        Object.keys(((await (await series(token)).json()) as { services: object }).services),
      ),
    );
    expect(own?.every((name) => name === 'kv')).toBe(true);
    expect(all).toBeDefined();
  });

  it('counts what was asked, of all processes together, in windows of 15 minutes', async () => {
    const other = await spawnGateway({ kv: {}, http: { workers: 2 } });
    const authorization = `Bearer ${TOKENS.kv}`;
    const asks = Array.from({ length: 40 }, () =>
      fetch(`${other.url}/kv/ping`, { headers: { authorization, connection: 'close' } }),
    );
    await Promise.all(asks);
    interface View {
      firstStep: number;
      inFlight: number[];
      services: { kv?: { requests: number[]; p99: (number | null)[] } };
    }
    let view: View;
    const end = Date.now() + 60_000;
    do {
      const reply = await fetch(`${other.url}/console/api/series`, { headers: { authorization } });
      view = (await reply.json()) as View;
      await new Promise((resolve) => setTimeout(resolve, 250));
    } while (view.services.kv === undefined && Date.now() < end);
    const counted = view.services.kv?.requests.reduce((sum, one) => sum + one, 0);
    expect(counted).toBe(40);
    expect(view.inFlight).toHaveLength(180);
    const last = view.firstStep + view.inFlight.length - 1;
    const next = await fetch(`${other.url}/console/api/series?after=${last}`, { headers: { authorization } });
    expect(((await next.json()) as View).inFlight.length).toBeLessThanOrEqual(2);
    expect(await other.stop()).toBe(0);
  });
});

it('is not there on an address that others reach, unless the configuration says so', async () => {
  const open = (console: object) =>
    spawnGateway({ kv: {}, console, http: { host: '0.0.0.0', metricsToken: TOKENS.metrics } });
  for (const [settings, status] of [
    [{}, 404],
    [{ enabled: true }, 200],
  ] as const) {
    const other = await open(settings);
    expect((await fetch(`${other.url}/console/`)).status).toBe(status);
    await other.stop();
  }
  const off = await startGateway({ kv: {}, console: { enabled: false } });
  expect((await fetch(`${off.url}/console/`)).status).toBe(404);
  await off.stop();
});
