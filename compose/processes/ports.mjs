import { createServer } from 'node:net';
import { listenerOf } from './process-table.mjs';

/** @returns {Promise<string | undefined>} the system's code for why no program could listen on this port of 127.0.0.1 now */
function whyNotFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(/** @type {NodeJS.ErrnoException} */ (error).code));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** @returns {Promise<boolean>} whether a program could listen on this port of 127.0.0.1 now */
export const portIsFree = async (port) => (await whyNotFree(port)) === undefined;

/**
 * @typedef {{holder: string, isProgram: boolean}} Holder of a port; isProgram: one that could be ended
 * @returns {Promise<Holder | undefined>} undefined where a port of 127.0.0.1 is free
 */
export async function holderOf(port) {
  const why = await whyNotFree(port);
  if (why === undefined) return undefined;
  if (why === 'EACCES') return { holder: 'root alone', isProgram: false };
  return { holder: listenerOf(port) ?? 'another program', isProgram: true };
}

/** @param {Holder & {port: number, owner: string}} taken @param {string} remedy how to choose another port */
export function portError({ port, owner, holder, isProgram }, remedy) {
  const fact = isProgram
    ? `taken by ${holder}. End that program, or ${remedy}`
    : `that of ${holder}: ${remedy}`;
  return new Error(`port ${port}, which is for ${owner}, is ${fact}`);
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
  const taken = await holderOf(port);
  if (taken !== undefined) throw portError({ port, owner, ...taken }, remedy);
}
