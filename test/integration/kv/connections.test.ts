import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createLogger } from '../../../src/lib/logger.js';
import { Connection } from '../../../src/services/kv/redis/connection.js';
import { makeCertificates } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { startGateway } from '../../support/gateway.js';
import { kvRequest } from '../../support/kv/kv.js';
import type { RedisOptions } from '../../support/kv/redis-configuration.js';
import { startRedis } from '../../support/kv/redis-server.js';
import { OPERATOR_VARIABLES, operatorPage } from '../../support/operator.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

/** What a URL needs to be encoded, and what YAML, shells and Redis' own configuration would trip over. */
const PASSWORD = `p@ss:w/o?r#d %20[&]='$é`;

const stopLater = stopAfterEach();
const redis = async (options: RedisOptions = {}) => stopLater(await startRedis(options));

async function gatewayFor(
  database: Record<string, unknown>,
  log?: ReturnType<typeof createLogger>,
): Promise<string> {
  const settings = { kv: { databases: [database] } };
  return stopLater(await startGateway(settings, { ...OPERATOR_VARIABLES, PORTICO_REDIS_URL: '' }, log)).url;
}

async function serves(url: string, path = '/kv'): Promise<void> {
  await eventually(async () =>
    expect((await kvRequest(url, ['SET', 'greeting', 'hello'], { path })).body).toEqual({ result: 'OK' }),
  );
  expect((await kvRequest(url, ['GET', 'greeting'], { path })).body).toEqual({ result: 'hello' });
}

describe('TLS', () => {
  it('is spoken to a server that is known by the configured authority', async () => {
    const server = await redis({ tls: 'server', password: 'of-the-server' });
    await serves(await gatewayFor({ url: server.url, tls: { ca: server.certificates?.ca } }));
  });

  it('shows its own certificate to a server that asks for one', async () => {
    const server = await redis({ tls: 'mutual' });
    const { ca, clientCert: cert, clientKey: key } = server.certificates as never;
    await serves(await gatewayFor({ url: server.url, tls: { ca, cert, key } }));
    const without = await gatewayFor({ url: server.url, tls: { ca } });
    await eventually(async () =>
      expect((await operatorPage(without, '/readyz')).text).toMatch(/not connected \(\w/),
    );
    expect((await kvRequest(without, ['PING'])).status).toBe(503);
  });

  it('refuses a server of a stranger: 503, and a log line with the reason and no secret', async () => {
    const server = await redis({ tls: 'server', password: 'secret-of-the-server' });
    const { ca } = await makeCertificates(join(server.folder, 'stranger'));
    const lines: string[] = [];
    const log = createLogger('info', { write: (line) => void lines.push(line) });
    const url = await gatewayFor({ url: server.url, tls: { ca } }, log);
    await eventually(() => expect(lines.join('')).toContain('no connection to Redis'));
    const { status, body, headers } = await kvRequest(url, ['PING']);
    expect({ status, body }).toEqual({
      status: 503,
      body: { error: expect.stringMatching(/nothing was executed/) },
    });
    expect(headers.get('retry-after')).toBe('1');
    expect(lines.join('')).toMatch(/certificate/);
    expect((await operatorPage(url, '/readyz')).text + lines.join('')).not.toContain('secret-of-the-server');
    // without a certificate authority of its own, the well-known ones do not know the server either
    const unknown = await gatewayFor({ url: server.url });
    await eventually(async () =>
      expect((await operatorPage(unknown, '/readyz')).text).toMatch(/not connected \(\w/),
    );
    expect((await kvRequest(unknown, ['PING'])).status).toBe(503);
  });

  it('ends at any moment of a handshake with a stranger, and the process lives', async () => {
    const server = await redis({ tls: 'server' });
    const { ca } = await makeCertificates(join(server.folder, 'stranger'));
    const endpoint = { host: '127.0.0.1', port: server.port, db: 0, tls: { ca: await readFile(ca) } };
    const log = createLogger('error', { write: () => undefined });
    const onSocket = () => undefined;
    // an error that nobody hears fails the test; without the listener more than half of these have one
    const endsAfter = async (ms: number) => {
      const connection = new Connection({
        endpoint,
        connectTimeoutMs: 60_000,
        log,
        onSocket,
        givesUp: false,
      });
      await setTimeout(ms);
      connection.close();
    };
    for (let round = 0; round < 10; round += 1)
      await Promise.all(Array.from({ length: 30 }, (_, index) => endsAfter(index)));
    await serves(await gatewayFor({ url: server.url, tls: { ca: server.certificates?.ca } }));
  });

  it('reads its files with the configuration: what is wrong is named by its key', async () => {
    const server = await redis({ tls: 'server' });
    const { ca, clientCert, clientKey, serverKey } = server.certificates as never;
    await expect(gatewayFor({ url: server.url.replace('rediss:', 'redis:'), tls: { ca } })).rejects.toThrow(
      /kv\.databases\[0\]\.tls\.ca: the address has no TLS: expected rediss:\/\/ in url/,
    );
    const problems = async (tls: Record<string, unknown>) =>
      gatewayFor({ url: server.url, tls }).catch((error: Error) => error.message);
    expect(await problems({ ca: '/nowhere/ca.pem' })).toMatch(
      /kv\.databases\[0\]\.tls\.ca: the file cannot be read \(ENOENT\)/,
    );
    expect(await problems({ ca: server.folder })).toMatch(/tls\.ca: the file cannot be read \(EISDIR\)/);
    expect(await problems({ ca: clientKey })).toMatch(/tls\.ca: expected a PEM file with certificates/);
    expect(await problems({ ca, cert: clientCert })).toMatch(/tls\.key: missing/);
    expect(await problems({ ca, key: clientKey })).toMatch(/tls\.cert: missing/);
    expect(await problems({ ca, cert: clientCert, key: ca })).toMatch(/tls\.key: expected a PEM file/);
    expect(await problems({ ca, cert: clientCert, key: serverKey })).toMatch(/tls\.key: not the key/);
  });
});

it('talks over a Unix socket, in the database that the address names', async () => {
  const server = await redis({ password: PASSWORD, unixSocket: true });
  const login = `unix://:${encodeURIComponent(PASSWORD)}@`;
  await serves(await gatewayFor({ url: `${login}${server.socketPath}?db=1` }));
  expect(await server.command('GET', 'greeting')).toBeNull();
  await server.command('SELECT', 1);
  expect(await server.command('GET', 'greeting')).toBe('hello');
  await rm(server.socketPath);
  const away = await gatewayFor({ url: `${login}${server.socketPath}` });
  expect((await kvRequest(away, ['PING'])).status).toBe(503);
});

it('talks over IPv6', async () => {
  const server = await redis({ config: ['bind ::1'] });
  await serves(await gatewayFor({ url: `redis://[::1]:${server.port}` }));
});

it('logs in with a user and a password of any characters', async () => {
  const digest = createHash('sha256').update(PASSWORD).digest('hex');
  const server = await redis({
    acl: ['user default off', `user a/user:of@${digest} on #${digest} ~* &* +@all`],
  });
  const login = [`a/user:of@${digest}`, PASSWORD].map(encodeURIComponent).join(':');
  await serves(await gatewayFor({ url: `redis://${login}@127.0.0.1:${server.port}` }));
});

it('serves several databases at once, each with its path, tokens and port', async () => {
  const [first, second] = await Promise.all([redis({ password: 'of-the-first' }), redis()]);
  const token = (name: string) => `token-of-${name}-0123456789abcdef`;
  const port = await freePort();
  const gateway = await startGateway(
    {
      kv: {
        databases: [
          { name: 'zero', url: `${first.url}/0`, path: '/zero', token: token('zero') },
          { name: 'one', url: `${first.url}/1`, path: '/one', token: token('one') },
          { name: 'two', url: second.url, path: '/two', token: token('two'), port },
        ],
      },
    },
    { PORTICO_REDIS_URL: '', PORTICO_KV_TOKEN: '', PORTICO_KV_READONLY_TOKEN: '' },
  );
  stopLater(gateway);
  const names = ['zero', 'one', 'two'];
  const own = (name: string) => ({ path: `/${name}`, token: token(name) });
  for (const name of names) {
    await eventually(async () =>
      expect((await kvRequest(gateway.url, ['SET', 'who', name], own(name))).status).toBe(200),
    );
  }
  for (const name of names)
    expect((await kvRequest(gateway.url, ['GET', 'who'], own(name))).body).toEqual({ result: name });
  for (const name of names)
    expect(
      (await kvRequest(gateway.url, ['GET', 'who'], { ...own(name), token: token('other') })).status,
    ).toBe(401);
  expect((await kvRequest(gateway.url, ['GET', 'who'], { path: '/one', token: token('zero') })).status).toBe(
    401,
  );
  const direct = `http://127.0.0.1:${port}`;
  expect((await kvRequest(direct, ['GET', 'who'], { path: '/', token: token('two') })).body).toEqual({
    result: 'two',
  });
  // one that is away leaves the others alone
  await second.kill();
  await eventually(async () =>
    expect((await kvRequest(gateway.url, ['GET', 'who'], own('two'))).status).toBe(503),
  );
  expect((await kvRequest(gateway.url, ['GET', 'who'], own('one'))).body).toEqual({ result: 'one' });
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
});
