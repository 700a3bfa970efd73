/** @param {string} path @param {string} [token] @returns {Buffer} */
export function get(path, token) {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${credentials(token)}\r\n`);
}

/**
 * A POST as `@upstash/redis` sends it, without its telemetry.
 * @param {string} path
 * @param {string} body JSON
 * @param {{ token?: string, base64?: boolean }} [options]
 * @returns {Buffer}
 */
export function post(path, body, { token, base64 = false } = {}) {
  const encoding = base64 ? 'Upstash-Encoding: base64\r\n' : '';
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${credentials(token)}Content-Type: application/json\r\n${encoding}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function credentials(token) {
  return token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
}
