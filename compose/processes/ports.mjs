import { createServer } from 'node:net';
import { listenerOf } from './process-table.mjs';

/** @returns {Promise<boolean>} whether a program could listen on this port of 127.0.0.1 now */
export function portIsFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** @returns {Promise<number>} a port of 127.0.0.1 that nobody uses now */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port: 0 }, () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/**
 * @param {number} port
 * @param {string} owner what the port is for
 * @param {string} remedy how to choose another port
 * @throws {Error} that names the port, the program that has it, and the way out
 */
export async function demandFree(port, owner, remedy) {
  if (await portIsFree(port)) return;
  const holder = listenerOf(port) ?? 'another program';
  throw new Error(
    `port ${port}, which is for ${owner}, is taken by ${holder}. End that program, or ${remedy}`,
  );
}
