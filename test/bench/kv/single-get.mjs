import { compare } from '../frame.mjs';
import { fixed } from '../load.mjs';
import { get } from './requests.mjs';
import { withKvServers } from './servers.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['redis'];

const VALUE = 'x'.repeat(100);

/**
 * One GET of 100 bytes a request, through the whole gateway, against bare node:http with ioredis.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ redis, prefix, token, reference, gateway }) => {
    const key = `${prefix}get`;
    await redis.set(key, VALUE, 'EX', 3_600);
    const expected = JSON.stringify({ result: VALUE });
    const contenders = [
      { name: 'node:http + ioredis', server: reference, session: fixed(get(`/get/${key}`), expected) },
      {
        name: 'Portico',
        server: gateway,
        session: fixed(get(`/kv/get/${key}`, token), expected),
        goal: { ratio: 0.85 },
      },
    ];
    return compare({ title: 'kv: single GET of 100 bytes', contenders, connections: 64 }, load);
  });
}
