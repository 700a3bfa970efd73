import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { Webhook } from 'standardwebhooks';
import { type Certificates, makeCertificates } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publish,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { stopAfterEach } from '../../support/stop-after-each.js';
import { TOKENS } from '../../support/tokens.js';

const namespace = queueNamespace();
const later = stopAfterEach();
let receiver: Receiver;
let folder: string;
let certificates: Certificates;
const servers: Server[] = [];

beforeAll(async () => {
  receiver = await startReceiver();
  folder = await mkdtemp(join(tmpdir(), 'portico-destinations-'));
  certificates = await makeCertificates(folder);
});
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});
afterAll(async () => {
  await receiver?.stop();
  await namespace.remove();
  await rm(folder, { recursive: true, force: true });
});

async function gatewayWith(change: Record<string, unknown>): Promise<RunningGateway> {
  const gateway = later(await startGateway({ queue: { ...namespace.config, ...change } }));
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  return gateway;
}

async function listening(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const at = (path: string) => receiver.received.filter(({ url }) => url === path);
const QUICK = { 'upstash-retries': '2', 'upstash-retry-delay': '200' };

async function failureOf(gateway: RunningGateway, id: string | undefined): Promise<string> {
  return eventually(async () => {
    const [row] = await namespace.query<{ error: string }>(
      `select error from $schema.events where message_id = $1 and state = 'ERROR' order by at limit 1`,
      [id],
    );
    expect(row).toBeDefined();
    expect(gateway.url).toBeDefined();
    return (row as { error: string }).error;
  });
}

describe('a permission with a port', () => {
  it('opens that port alone', async () => {
    const gateway = await gatewayWith({ allowedDestinations: [`127.0.0.1:${receiver.port}`] });
    expect((await publishUntilTaken(gateway, `${receiver.url}/permitted`)).status).toBe(200);
    await eventually(() => expect(at('/permitted')).toHaveLength(1));
    const other = await publish(gateway, 'http://127.0.0.1:5432/');
    expect(other).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('port 5432 of it is not among those allowed') },
    });
    // a name is judged when it is resolved
    const { body } = await publishUntilTaken(gateway, `http://localhost:${receiver.port}/by-name`, QUICK);
    await eventually(() => expect(at('/by-name')).toHaveLength(1));
    expect(body.messageId).toBeDefined();
  });
});

describe('a proxy', () => {
  interface Proxy {
    readonly url: string;
    readonly asked: { authority: string; authorization: string | undefined }[];
  }

  async function startProxy(refuse = false): Promise<Proxy> {
    const asked: Proxy['asked'] = [];
    const server = createServer();
    server.on('connect', ({ url = '', headers }: IncomingMessage, client) => {
      asked.push({ authority: url, authorization: headers['proxy-authorization'] });
      if (refuse) {
        client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
        return;
      }
      const upstream = connect(Number(url.split(':')[1]), '127.0.0.1');
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(upstream).pipe(client);
      for (const socket of [client, upstream])
        socket.on('error', () => undefined).on('close', () => [client, upstream].map((one) => one.destroy()));
    });
    return { url: `http://us%40er:pa%3Ass@127.0.0.1:${await listening(server)}`, asked };
  }

  it('is what every delivery goes through, and is told its credentials', async () => {
    const proxy = await startProxy();
    const gateway = await gatewayWith({ proxyUrl: proxy.url });
    expect((await publishUntilTaken(gateway, `${receiver.url}/proxied`, {}, 'body')).status).toBe(200);
    await eventually(() => expect(at('/proxied')).toHaveLength(1));
    expect(String(at('/proxied')[0]?.body)).toBe('body');
    expect(proxy.asked[0]).toEqual({
      authority: `127.0.0.1:${receiver.port}`,
      authorization: `Basic ${Buffer.from('us@er:pa:ss').toString('base64')}`,
    });
  });

  it('carries TLS to the destination, whose certificate is checked', async () => {
    const proxy = await startProxy();
    const got: string[] = [];
    const { ca, serverCert, serverKey } = certificates;
    const server = createTlsServer({ cert: readFileSync(serverCert), key: readFileSync(serverKey) });
    server.on('request', (request, response) => {
      got.push(request.url ?? '');
      response.end();
    });
    const port = await listening(server);
    const trusting = await gatewayWith({ proxyUrl: proxy.url, deliveryCa: ca });
    await publishUntilTaken(trusting, `https://localhost:${port}/secret`, QUICK);
    await eventually(() => expect(got).toEqual(['/secret']));
    expect(proxy.asked.at(-1)?.authority).toBe(`localhost:${port}`);
  });

  it('that refuses is a failed attempt, which says so without its password', async () => {
    const proxy = await startProxy(true);
    const gateway = await gatewayWith({ proxyUrl: proxy.url });
    const { body } = await publishUntilTaken(gateway, `${receiver.url}/refused`, { 'upstash-retries': '0' });
    const error = await failureOf(gateway, body.messageId);
    expect(error).toBe('the proxy refused the connection (status 403)');
  });
});

describe('TLS', () => {
  interface Peer {
    readonly port: number;
    readonly names: (string | undefined)[];
  }

  async function startTls(options: ServerOptions = {}): Promise<Peer> {
    const { ca, serverCert, serverKey } = certificates;
    const files = { ca: readFileSync(ca), cert: readFileSync(serverCert), key: readFileSync(serverKey) };
    const names: (string | undefined)[] = [];
    const server = createTlsServer({ ...files, ...options }, (request, response) => {
      const subject = (request.socket as TLSSocket).getPeerCertificate().subject as
        | { CN?: string }
        | undefined;
      names.push(subject?.CN);
      response.end();
    });
    return { port: await listening(server), names };
  }

  it('trusts an authority of its own beside the well-known ones', async () => {
    const { port, names } = await startTls();
    const stranger = await gatewayWith({});
    const { body } = await publishUntilTaken(stranger, `https://127.0.0.1:${port}/`, {
      'upstash-retries': '0',
    });
    expect(await failureOf(stranger, body.messageId)).toMatch(/certificate/);
    expect(names).toEqual([]);
    const trusting = await gatewayWith({ deliveryCa: certificates.ca });
    await publishUntilTaken(trusting, `https://127.0.0.1:${port}/`);
    await eventually(() => expect(names).toEqual([undefined]));
  });

  it('shows a certificate of its own to the destination that it is for, and to no other', async () => {
    const asking = { requestCert: true, rejectUnauthorized: false };
    const [wanted, other] = [await startTls(asking), await startTls(asking)];
    const { ca, clientCert: cert, clientKey: key } = certificates;
    const destinations = [{ host: `127.0.0.1:${wanted.port}`, tls: { ca, cert, key } }];
    const gateway = await gatewayWith({ destinations, deliveryCa: ca });
    for (const { port } of [wanted, other]) await publishUntilTaken(gateway, `https://127.0.0.1:${port}/`);
    await eventually(() => expect(wanted.names).toEqual(['portico-client']));
    await eventually(() => expect(other.names).toEqual([undefined]));
  });
});

describe('access tokens', () => {
  interface TokenServer {
    readonly url: string;
    readonly asked: { authorization: string | undefined; form: Record<string, string> }[];
    status: number;
    expiresIn: number;
  }

  async function startTokens(): Promise<TokenServer> {
    const asked: TokenServer['asked'] = [];
    const own = { url: '', asked, status: 200, expiresIn: 3_600 };
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
        asked.push({ authorization: request.headers.authorization, form });
        response.writeHead(own.status, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({
            access_token: `t${asked.length}`,
            token_type: 'Bearer',
            expires_in: own.expiresIn,
          }),
        );
      });
    });
    own.url = `http://127.0.0.1:${await listening(server)}/token`;
    return own;
  }

  const oauth = (tokens: TokenServer, change = {}) => ({
    destinations: [
      {
        host: '127.0.0.1',
        oauth: {
          tokenUrl: tokens.url,
          clientId: 'me',
          clientSecret: 'sec ret'.replace(' ', '%'),
          scope: 'a b',
          ...change,
        },
      },
    ],
  });

  it('are had once and carried by every delivery that has no credentials of its own', async () => {
    const tokens = await startTokens();
    const gateway = await gatewayWith(oauth(tokens));
    await Promise.all([1, 2, 3].map(() => publishUntilTaken(gateway, `${receiver.url}/with-token`)));
    await publishUntilTaken(gateway, `${receiver.url}/own`, {
      'upstash-forward-authorization': 'Bearer mine',
    });
    await eventually(() => expect([at('/with-token').length, at('/own').length]).toEqual([3, 1]));
    expect(at('/with-token').map(({ headers }) => headers.authorization)).toEqual(Array(3).fill('Bearer t1'));
    expect(at('/own')[0]?.headers.authorization).toBe('Bearer mine');
    expect(tokens.asked).toEqual([
      {
        authorization: `Basic ${Buffer.from('me:sec%25ret').toString('base64')}`,
        form: { grant_type: 'client_credentials', scope: 'a b' },
      },
    ]);
  });

  it('are had anew when the destination refuses one, and in the body where the server wants that', async () => {
    const tokens = await startTokens();
    const picky = await startReceiver((request, response) => {
      response.writeHead(request.headers.authorization === 'Bearer t2' ? 200 : 401).end();
    });
    try {
      const gateway = await gatewayWith(oauth(tokens, { credentialsIn: 'body' }));
      await publishUntilTaken(gateway, `${picky.url}/`, QUICK);
      await eventually(() =>
        expect(picky.received.map(({ headers }) => headers.authorization)).toEqual([
          'Bearer t1',
          'Bearer t2',
        ]),
      );
      expect(tokens.asked[0]).toEqual({
        authorization: undefined,
        form: { grant_type: 'client_credentials', scope: 'a b', client_id: 'me', client_secret: 'sec%ret' },
      });
    } finally {
      await picky.stop();
    }
  });

  it('that nobody gives are a failed attempt, which is repeated; the destination is not called without', async () => {
    const tokens = await startTokens();
    tokens.status = 500;
    const gateway = await gatewayWith(oauth(tokens));
    const { body } = await publishUntilTaken(gateway, `${receiver.url}/no-token`, {
      'upstash-retries': '5',
      'upstash-retry-delay': '1000',
    });
    const error = await failureOf(gateway, body.messageId);
    expect(error).toMatch(/^no access token was given by 127\.0\.0\.1:\d+: status 500$/);
    expect(at('/no-token')).toEqual([]);
    tokens.status = 200;
    await eventually(() => expect(at('/no-token')).toHaveLength(1));
  });
});

it('signs in the form of Standard Webhooks too, for receivers that know either key', async () => {
  const gateway = await gatewayWith({ standardWebhooks: true });
  await publishUntilTaken(gateway, `${receiver.url}/standard`, {}, '{"héllo":1}');
  await eventually(() => expect(at('/standard')).toHaveLength(1));
  const [{ headers, body } = { headers: {}, body: Buffer.alloc(0) }] = at('/standard');
  const sent = headers as Record<string, string>;
  expect(sent['webhook-id']).toBe(sent['upstash-message-id']);
  for (const key of [TOKENS.currentSigningKey, TOKENS.nextSigningKey]) {
    const webhook = new Webhook(`whsec_${Buffer.from(key).toString('base64')}`);
    expect(webhook.verify(body.toString(), sent)).toEqual({ héllo: 1 });
    expect(() => webhook.verify(`${body} `, sent)).toThrow();
  }
  expect(sent['upstash-signature']).toBeDefined();
});

it('names what only the hosted service has', async () => {
  const gateway = await gatewayWith({});
  expect(await publish(gateway, 'api/llm')).toMatchObject({
    status: 412,
    body: { error: expect.stringContaining('api/llm is an API of the hosted service') },
  });
});
