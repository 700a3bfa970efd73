import { compare } from '../frame.mjs';
import { fixed } from '../load.mjs';
import { post } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

const ROWS = 100;

/**
 * 100 GETs of 100 bytes a request, with the header that the SDK sends and without.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ redis, prefix, token, reference, gateway }) => {
    const keys = Array.from({ length: ROWS }, (_, i) => `${prefix}row:${i}`);
    const values = keys.map((_, i) => String(i).padStart(100, 'x'));
    await redis.mset(...keys.flatMap((key, i) => [key, values[i]]));
    const body = JSON.stringify(keys.map((key) => ['get', key]));
    const expected = (encode) => JSON.stringify(values.map((value) => ({ result: encode(value) })));
    const text = expected((value) => value);
    const base64 = expected((value) => Buffer.from(value).toString('base64'));
    const goal = { perSecond: 250_000 };
    const contenders = [
      { name: 'node:http + ioredis', server: reference, session: fixed(post('/pipeline', body), text) },
      {
        name: 'Portico, base64',
        server: gateway,
        session: fixed(post('/kv/pipeline', body, { token, base64: true }), base64),
        goal,
      },
      {
        name: 'Portico, text',
        server: gateway,
        session: fixed(post('/kv/pipeline', body, { token }), text),
        goal,
      },
    ];
    const title = `kv: /pipeline of ${ROWS} GETs of 100 bytes`;
    return compare({ title, contenders, connections: 16, unitsPerRequest: ROWS, unit: 'commands' }, load);
  });
}
