import { compare } from '../frame.mjs';
import { fixed } from '../load.mjs';
import { post } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

/**
 * One SET of 100 bytes a request, as a JSON array in the body, which is how the SDK sends it.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ prefix, token, reference, gateway }) => {
    const body = JSON.stringify(['SET', `${prefix}set`, 'x'.repeat(100)]);
    const expected = '{"result":"OK"}';
    const contenders = [
      { name: 'node:http + ioredis', server: reference, session: fixed(post('/', body), expected) },
      {
        name: 'Portico',
        server: gateway,
        session: fixed(post('/kv', body, { token, base64: true }), expected),
        goal: { ratio: 0.85 },
      },
    ];
    return compare({ title: 'kv: single SET of 100 bytes', contenders, connections: 64 }, load);
  });
}
