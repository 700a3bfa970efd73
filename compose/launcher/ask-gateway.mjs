import { request } from 'node:https';

/**
 * A page of the gateway that runs here.
 * @param {string} url
 * @param {{token?: string | undefined, timeoutMs: number}} options
 * @returns {Promise<{ok: boolean, json(): Promise<unknown>}>}
 * @throws when it does not answer
 */
export async function askGateway(url, { token, timeoutMs }) {
  const headers = /** @type {Record<string, string>} */ (token ? { authorization: `Bearer ${token}` } : {});
  const signal = AbortSignal.timeout(timeoutMs);
  if (!url.startsWith('https:')) return fetch(url, { headers, signal });
  return askOverTls(url, { headers, signal });
}

/** Its certificate is for the name by which clients know it, and what is asked never leaves this machine. */
function askOverTls(url, options) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...options, rejectUnauthorized: false }, (reply) => {
      const pieces = [];
      reply.on('data', (piece) => pieces.push(piece)).on('error', reject);
      reply.on('end', () => {
        const status = reply.statusCode ?? 0;
        const json = async () => JSON.parse(Buffer.concat(pieces).toString());
        resolve({ ok: status >= 200 && status < 300, json });
      });
    });
    asked.on('error', reject).end();
  });
}
