import { randomBytes } from 'node:crypto';
import { compare, noneWrong } from '../frame.mjs';
import { fixed } from '../load.mjs';
import { bareIoredis } from './bare-ioredis.mjs';
import { post } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

const OK = '{"result":"OK"}';

/**
 * SETs of 1 MB of text: MB/s. What Redis then has is compared with what was sent.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ redis, prefix, token, reference, gateway }) => {
    const value = randomBytes(500_000).toString('hex');
    const bytes = Buffer.from(value);
    const command = (key) => JSON.stringify(['SET', prefix + key, value]);
    const goal = { ratio: 0.5 };
    const contenders = [
      bareIoredis('ioredis, no HTTP', async () => (await redis.set(`${prefix}bare`, bytes)) === 'OK'),
      { name: 'node:http + ioredis', server: reference, session: fixed(post('/', command('reference')), OK) },
      {
        name: 'Portico, JSON',
        server: gateway,
        session: fixed(post('/kv', command('json'), { token, base64: true }), OK),
        goal,
      },
      {
        name: 'Portico, raw body',
        server: gateway,
        session: fixed(post(`/kv/set/${prefix}raw`, value, { token }), OK),
        goal,
      },
    ];
    const right = await compare({ title: 'kv: SET of 1 MB', contenders, connections: 8, unit: 'MB' }, load);
    const kept = await redis.mget(...['bare', 'reference', 'json', 'raw'].map((key) => prefix + key));
    return noneWrong(kept.filter((text) => text !== value).length) && right;
  });
}
