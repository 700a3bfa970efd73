import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { type Certificates, makeCertificates } from '../../support/certificates.js';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { publish, publishUntilTaken, queueNamespace, startReceiver } from '../../support/queue/queue.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

/** TLS that ends before RabbitMQ, as at a load balancer: it asks every client for a certificate. */
const namespace = queueNamespace();
const target = new URL(backendAddress('PORTICO_RABBITMQ_URL'));
const later = stopAfterEach();
let folder: string;
let certificates: Certificates;
let server: Server;
const refusals: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-tls-'));
  certificates = await makeCertificates(folder);
  const { ca, serverCert: cert, serverKey: key } = certificates;
  const options = {
    ca: readFileSync(ca),
    cert: readFileSync(cert),
    key: readFileSync(key),
    requestCert: true,
    rejectUnauthorized: true,
  };
  server = createServer(options, (client: TLSSocket) => {
    const rabbitmq = connect(Number(target.port), target.hostname);
    client.pipe(rabbitmq).pipe(client);
    for (const socket of [client, rabbitmq])
      socket.on('error', () => undefined).on('close', () => [client, rabbitmq].map((one) => one.destroy()));
  });
  server.on('tlsClientError', ({ message }) => void refusals.push(message));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}, 120_000);
afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
  await namespace.remove();
});

const address = () => {
  const { port } = server.address() as AddressInfo;
  return `amqps://${target.username}:${target.password}@127.0.0.1:${port}`;
};

async function gatewayWith(rabbitmqTls: Record<string, string>) {
  const environment = { PORTICO_RABBITMQ_URL: address() };
  return later(await startGateway({ queue: { ...namespace.config, rabbitmqTls } }, environment));
}

it('delivers over TLS, with an authority and a certificate of its own', async () => {
  const { ca, clientCert: cert, clientKey: key } = certificates;
  const gateway = await gatewayWith({ ca, cert, key });
  const receiver = later(await startReceiver((_, response) => void response.end()));
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  await publishUntilTaken(gateway, `${receiver.url}/secure`);
  await eventually(() => expect(receiver.received.map(({ url }) => url)).toContain('/secure'));
  await eventually(async () => {
    const open = await namespace.query('select id from $schema.messages where finished_at is null');
    expect(open).toEqual([]);
  });
});

it.each([
  ['an authority that is not named', () => ({}), /hang up/],
  [
    'no certificate, although one is asked for',
    () => ({ ca: certificates.ca }),
    /did not return a certificate/,
  ],
])('%s: 503, nothing is taken', async (_name, files, refusal) => {
  refusals.length = 0;
  const gateway = await gatewayWith(files());
  await eventually(() => expect(refusals).toContainEqual(expect.stringMatching(refusal)));
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
  const { status, headers } = await publish(gateway, 'https://example.com/never');
  expect([status, Number(headers.get('retry-after')) > 0]).toEqual([503, true]);
});
