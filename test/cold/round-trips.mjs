import { parseEnvFile } from '../../compose/state/secrets.mjs';

/** Parses lines of `NAME=value`, quoted where a shell would need it. */
export function parseConnection(text) {
  const pairs = Object.entries(parseEnvFile(text));
  return Object.fromEntries(pairs.map(([name, value]) => [name, value.replace(/^'(.*)'$/, '$1')]));
}

async function call(url, authorization, body, headers = {}) {
  const method = body === undefined ? 'GET' : 'POST';
  const answer = await fetch(url, {
    method,
    headers: { authorization, ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${new URL(url).pathname} answers ${answer.status}: ${text.slice(0, 300)}`);
  return text;
}

const bearer = (token) => `Bearer ${token}`;

/** @type {Record<string, (env: Record<string, string>, word: string) => Promise<string>>} each writes a word and returns what it reads */
const trips = {
  async kv(env, word) {
    const token = bearer(env.PORTICO_KV_TOKEN);
    await call(env.PORTICO_KV_URL, token, ['SET', 'cold', word]);
    return call(`${env.PORTICO_KV_URL}/get/cold`, token);
  },
  async vector(env, word) {
    const token = bearer(env.PORTICO_VECTOR_TOKEN);
    const vector = Array.from({ length: 1536 }, (_, i) => i + 1);
    await call(`${env.PORTICO_VECTOR_URL}/upsert`, token, { id: 'cold', vector, metadata: { word } });
    return call(`${env.PORTICO_VECTOR_URL}/query`, token, { vector, topK: 1, includeMetadata: true });
  },
  async broker(env, word) {
    const { PORTICO_BROKER_USERNAME: user, PORTICO_BROKER_PASSWORD: password } = env;
    const basic = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    await call(`${env.PORTICO_BROKER_URL}/produce/greetings`, basic, { value: word });
    const url = `${env.PORTICO_BROKER_URL}/consume/cold-${word}/first/greetings?timeout=10000`;
    return call(url, basic, undefined, { 'Broker-Auto-Offset-Reset': 'earliest' });
  },
  async queue(env, word) {
    const token = bearer(env.PORTICO_QUEUE_TOKEN);
    await call(`${env.PORTICO_QUEUE_URL}/v2/publish/https://example.com/${word}`, token, word, {
      'Service-Delay': '1h',
    });
    return call(`${env.PORTICO_QUEUE_URL}/v2/events`, token);
  },
};

/**
 * Writes a value to each service and reads it back.
 * @param {Record<string, string>} env what connection.env says
 * @param {string} word no other one's
 * @returns {Promise<string[]>} what went wrong, a line a service
 */
export async function roundTrips(env, word) {
  const results = await Promise.allSettled(
    Object.entries(trips).map(async ([name, trip]) => {
      const read = await trip(env, word);
      if (!read.includes(word)) throw new Error(`${name} does not know ${word}: ${read.slice(0, 300)}`);
    }),
  );
  return results.flatMap((result, at) =>
    result.status === 'rejected' ? [`${Object.keys(trips)[at]}: ${result.reason.message}`] : [],
  );
}
