import { writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { startServer } from '../server-process.mjs';

const agent = new Agent({ keepAlive: true });

/** Not `fetch`, which takes several times as much of the cores that the client shares with the gateway. */
export function ask(port, path, headers, method) {
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, path, headers, method, agent, host: '127.0.0.1' }, (reply) => {
      const chunks = [];
      reply.on('data', (chunk) => chunks.push(chunk));
      reply.on('end', () =>
        resolve({ status: reply.statusCode, text: Buffer.concat(chunks).toString('latin1') }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

export function closeConnections() {
  agent.destroy();
}

/** The built gateway with the broker service alone. @param {object} [cluster] what is said of it beside its addresses */
export async function startBrokerGateway(folder, brokers, password, cluster = {}) {
  const file = join(folder, 'portico.yaml');
  const document = { http: { port: 0 }, broker: { clusters: [cluster] } };
  await writeFile(file, JSON.stringify(document), { mode: 0o600 });
  const off = Object.fromEntries(
    ['KV', 'VECTOR', 'QUEUE'].map((name) => [`PORTICO_${name}_ENABLED`, 'false']),
  );
  return startServer({
    args: ['dist/main.js', '--config', file],
    env: { ...off, PORTICO_KAFKA_BROKERS: brokers, PORTICO_BROKER_PASSWORD: password },
    portOf: (line) => Number(/"port":(\d+).*"msg":"listening"/.exec(line)?.[1]) || undefined,
  });
}
