import { Agent, request as httpRequest } from 'node:http';
import { startServer } from '../server-process.mjs';

/** Connections to the gateway, kept as clients keep them. */
export const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** A destination as a process of its own. */
export function startSink() {
  return startServer({
    args: ['test/bench/queue/sink.mjs'],
    portOf: (line) => Number(/^listening on (\d+)$/.exec(line)?.[1]) || undefined,
  });
}

/** How many messages have come to a sink. */
export async function countOf(sink) {
  return Number(await (await fetch(`http://127.0.0.1:${sink.port}/count`)).text());
}

/**
 * Publishes one message through the gateway.
 * @param {{ headers?: Record<string, string>, body: Buffer | string }} message
 * @throws Error when it is not accepted
 */
export function publish(gateway, url, { headers = {}, body }) {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      {
        agent,
        port: gateway.port,
        host: '127.0.0.1',
        method: 'POST',
        path: `/queue/v2/publish/${url}`,
        headers: {
          authorization: `Bearer ${gateway.token}`,
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
      },
      (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`publish: ${response.statusCode}`)),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
