import { X509Certificate } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type PeerCertificate, type SecureVersion, type TLSSocket } from 'node:tls';
import { type Certificates, makeCertificates } from '../../support/certificates.js';
import { freePort } from '../../support/free-port.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { startHttpCore, TOKEN } from '../../support/http-instance.js';
import { operatorPage } from '../../support/operator.js';
import { stopAfterEach } from '../../support/stop-after-each.js';
import { TOKENS } from '../../support/tokens.js';

const folder = mkdtempSync(join(tmpdir(), 'portico-tls-'));
let files: Certificates;
let others: Certificates;
/** Where a gateway looks for its own; each test begins with those of `files`. */
const own = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
const take = ({ serverCert, serverKey }: Certificates) => {
  copyFileSync(serverCert, own.cert);
  copyFileSync(serverKey, own.key);
};

beforeAll(async () => {
  [files, others] = await Promise.all([
    makeCertificates(join(folder, 'one')),
    makeCertificates(join(folder, 'two')),
  ]);
});
beforeEach(() => take(files));
afterAll(() => rmSync(folder, { recursive: true }));

interface Options {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly body?: string;
  readonly method?: string;
  readonly token?: string;
}

/** One request on a connection of its own. */
function call(port: number, path: string, options: Options = {}) {
  const { ca = files.ca, cert, key, body = '', method = 'POST', token = TOKEN } = options;
  return new Promise<{ status: number | undefined; text: string; peer: PeerCertificate }>(
    (resolve, reject) => {
      const pem = (name: string, file: string | undefined) =>
        file === undefined ? {} : { [name]: readFileSync(file) };
      const agent = new Agent({
        keepAlive: false,
        ...pem('ca', ca),
        ...pem('cert', cert),
        ...pem('key', key),
      });
      const headers = { authorization: `Bearer ${token}`, 'content-length': Buffer.byteLength(body) };
      const asked = request({ agent, host: '127.0.0.1', port, path, method, headers }, (reply) => {
        const peer = (reply.socket as TLSSocket).getPeerCertificate();
        let text = '';
        reply.on('data', (piece: Buffer) => {
          text += piece.toString();
        });
        reply.on('end', () => resolve({ status: reply.statusCode, text, peer }));
      });
      asked.on('error', reject).end(body);
    },
  );
}

const serial = (file: string) => new X509Certificate(readFileSync(file)).serialNumber;

describe('a port with a certificate', () => {
  it('serves requests, large ones too, and stops at once with connections that say nothing', async () => {
    const core = await startHttpCore({ tls: own }, { bodyLimit: 10_000_000 });
    expect((await call(core.port, '/test/echo/a')).status).toBe(200);
    const body = 'x'.repeat(5_000_000);
    expect(JSON.parse((await call(core.port, '/test/raw/b', { body })).text)).toEqual({
      target: '/b',
      size: body.length,
    });
    const silent = connectTcp(core.port, '127.0.0.1').on('error', () => undefined);
    const shaken = connect({ port: core.port, host: '127.0.0.1', ca: readFileSync(files.ca) });
    shaken.on('error', () => undefined);
    await new Promise((resolve) => shaken.once('secureConnect', resolve));
    expect(shaken.alpnProtocol).toBe(false);
    const started = performance.now();
    await core.stop();
    expect(performance.now() - started).toBeLessThan(10_000);
    silent.destroy();
    shaken.destroy();
  });

  it('speaks no TLS older than it should, and no HTTP without', async () => {
    const core = await startHttpCore({ tls: own });
    const shake = (maxVersion: SecureVersion) =>
      new Promise<string>((resolve) => {
        const ca = readFileSync(files.ca);
        const ciphers = 'DEFAULT@SECLEVEL=0';
        const socket = connect({
          port: core.port,
          host: '127.0.0.1',
          ca,
          minVersion: 'TLSv1',
          maxVersion,
          ciphers,
        });
        socket.once('secureConnect', () => resolve(socket.getProtocol() ?? ''));
        socket.once('error', () => resolve('refused'));
        socket.once('close', () => socket.destroy());
      });
    expect([await shake('TLSv1.1'), await shake('TLSv1.2'), await shake('TLSv1.3')]).toEqual([
      'refused',
      'TLSv1.2',
      'TLSv1.3',
    ]);
    await expect(fetch(`http://127.0.0.1:${core.port}/livez`)).rejects.toThrow();
    expect((await call(core.port, '/test/echo/a')).status).toBe(200);
    await core.stop();
    const strict = await startHttpCore({ tls: { ...own, minVersion: 'TLSv1.3' } });
    expect((await call(strict.port, '/test/echo/a')).status).toBe(200);
    await strict.stop();
  });

  it('answers what is no HTTP inside TLS in JSON', async () => {
    const core = await startHttpCore({ tls: own });
    const socket = connect({ port: core.port, host: '127.0.0.1', ca: readFileSync(files.ca) });
    let text = '';
    socket.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    socket.write('nonsense\r\n\r\n');
    await new Promise((resolve) => socket.once('close', resolve));
    expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*"error"/);
    await core.stop();
  });
});

describe('a gateway', () => {
  const stopLater = stopAfterEach();
  const start = async (tls: Record<string, unknown>, http: Record<string, unknown> = {}) => {
    const document = { http: { tls: { ...own, ...tls }, metricsToken: TOKENS.metrics, ...http } };
    const gateway: RunningGateway = await startGateway(document);
    stopLater(gateway);
    return { ...gateway, document, port: Number(new URL(gateway.url).port) };
  };

  it('shows a new certificate after it was told to read again, to new connections alone', async () => {
    const { port, reload, document } = await start({});
    expect((await call(port, '/livez')).peer.serialNumber).toBe(serial(files.serverCert));
    const kept = connect({ port, host: '127.0.0.1', ca: readFileSync(files.ca) });
    await new Promise((resolve) => kept.once('secureConnect', resolve));
    take(others);
    reload(document);
    expect((await call(port, '/livez', { ca: others.ca })).peer.serialNumber).toBe(serial(others.serverCert));
    await expect(call(port, '/livez')).rejects.toThrow();
    const replied = new Promise<string>((resolve) =>
      kept.once('data', (data: Buffer) => resolve(data.toString())),
    );
    kept.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await replied).toContain('200 OK');
    kept.destroy();
  });

  it('goes on with the one it has when the new one is none, or has another key', async () => {
    const { port, reload, document } = await start({});
    copyFileSync(others.serverKey, own.key);
    expect(() => reload(document)).toThrow(/http\.tls\.key: not the key of the certificate/);
    writeFileSync(own.cert, 'nothing');
    expect(() => reload(document)).toThrow(/http\.tls\.cert: expected a PEM file/);
    expect((await call(port, '/livez')).peer.serialNumber).toBe(serial(files.serverCert));
  });

  it('asks clients for a certificate of its authorities, but not operators', async () => {
    const operationsPort = await freePort();
    const { port } = await start({ clientCa: files.ca }, { operationsPort });
    await expect(call(port, '/kv')).rejects.toThrow();
    const stranger = { cert: others.clientCert, key: others.clientKey };
    await expect(call(port, '/kv', stranger)).rejects.toThrow();
    const known = { cert: files.clientCert, key: files.clientKey };
    expect((await call(port, '/nowhere', known)).status).toBe(404);
    const { text } = await call(operationsPort, '/livez');
    expect(text).toContain('Use one of: GET');
    await expect(start({ clientCa: files.ca })).rejects.toThrow(/http\.operationsPort/);
  });

  it('tells when its certificate ends', async () => {
    const { port } = await start({});
    const { text } = await call(port, '/metrics', { method: 'GET', token: TOKENS.metrics });
    const end = new X509Certificate(readFileSync(files.serverCert)).validToDate.getTime() / 1_000;
    expect(text).toContain(`portico_http_certificate_expires_seconds ${end}`);
    const plain = await startGateway({ http: { metricsToken: TOKENS.metrics } });
    stopLater(plain);
    const { text: without } = await operatorPage(plain.url, '/metrics');
    expect(without).not.toMatch(/^portico_http_certificate_expires_seconds \d/m);
  });
});

it.each([
  [{ cert: own.cert }, /http\.tls\.key|missing/],
  [{ key: own.key }, /missing, although there is a key/],
  [{ clientCa: '/nowhere.pem' }, /clientCa.*cannot be read/],
])('a configuration with %j is refused', async (tls, words) => {
  await expect(startGateway({ http: { tls } })).rejects.toThrow(words);
});
