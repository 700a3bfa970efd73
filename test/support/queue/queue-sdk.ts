import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, Receiver } from '@upstash/qstash';
import { eventually } from '../eventually.js';
import { type SpawnedGateway, spawnGateway } from '../spawned-gateway.js';
import { TOKENS } from '../tokens.js';
import { removeQueueService, SHARED_PREFIX } from './queue-cleanup.js';

export interface Delivery {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** `performance.now()` when it had arrived whole. */
  readonly at: number;
}

export interface SdkSite {
  readonly client: Client;
  readonly gateway: SpawnedGateway;
  /** Address of the destination, without a path. */
  readonly sink: string;
  readonly deliveries: readonly Delivery[];
  /** The deliveries to `path` once there are `count` of them. */
  at(path: string, count?: number): Promise<Delivery[]>;
  stop(): Promise<void>;
}

export type SinkAnswer = {
  status?: number;
  body?: string;
  headers?: Record<string, string>;
  afterMs?: number;
};

/** The built gateway, the public client, and a destination as its owner would write it: it verifies signatures first. */
export async function startSdkSite(
  name: string,
  config: Record<string, unknown>,
  answer: (delivery: Delivery) => SinkAnswer,
): Promise<SdkSite> {
  const { currentSigningKey, nextSigningKey } = TOKENS;
  const verifier = new Receiver({ currentSigningKey, nextSigningKey });
  const deliveries: Delivery[] = [];
  let sink = '';
  const handle = async (delivery: Delivery): Promise<SinkAnswer> => {
    const signature = String(delivery.headers['upstash-signature']);
    await verifier.verify({ signature, body: delivery.body, url: sink + delivery.path });
    deliveries.push(delivery);
    return answer(delivery);
  };
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      const { url: path = '', method = '', headers } = request;
      handle({ path, method, headers, body, at: performance.now() }).then(
        ({ status = 200, body: text = '', headers: own = {}, afterMs = 0 }) =>
          setTimeout(() => {
            response.writeHead(status, { 'Retry-After': '0', ...own });
            response.end(text);
          }, afterMs),
        () => {
          response.writeHead(401);
          response.end();
        },
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  sink = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await spawnGateway({
    queue: { allowedDestinations: ['127.0.0.1'], prefix: SHARED_PREFIX, schema: name, ...config },
  });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  return {
    client: new Client({ baseUrl: `${gateway.url}/queue`, token: TOKENS.queue }),
    gateway,
    sink,
    deliveries,
    at: (path, count = 1) =>
      eventually(() => {
        const found = deliveries.filter((delivery) => delivery.path === path);
        expect(found.length).toBeGreaterThanOrEqual(count);
        return found;
      }),
    stop: async () => {
      const code = await gateway.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await removeQueueService(name);
      expect(code).toBe(0);
    },
  };
}
