import { compare } from '../frame.mjs';
import { lasting } from '../load.mjs';
import { post } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

/** A rate limit over a sliding window of two fixed ones: what is left, or -1. */
const SCRIPT = `
local limit, now, window, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local before = tonumber(redis.call('GET', KEYS[2]) or '0')
local weighted = math.floor((1 - (now % window) / window) * before)
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
if weighted + used + cost > limit then return -1 end
local sum = redis.call('INCRBY', KEYS[1], cost)
if sum == cost then redis.call('PEXPIRE', KEYS[1], window * 2 + 1000) end
return limit - weighted - sum
`;

const LIMIT = 1_000_000_000;

/**
 * EVALSHA of a rate limit, the work of `@upstash/ratelimit`. Each connection has a window of its own and knows what
 * must be left.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ redis, prefix, token, reference, gateway }) => {
    const sha = await redis.script('LOAD', SCRIPT);
    const contenders = [
      {
        name: 'node:http + ioredis',
        server: reference,
        session: lasting((i) => session(sha, `${prefix}reference:${i}`, (body) => post('/', body))),
      },
      {
        name: 'Portico',
        server: gateway,
        session: lasting((i) =>
          session(sha, `${prefix}portico:${i}`, (body) => post('/kv', body, { token, base64: true })),
        ),
      },
    ];
    return compare({ title: 'kv: EVALSHA of a rate limit', contenders, connections: 64 }, load);
  });
}

function session(sha, key, makeRequest) {
  const body = ['evalsha', sha, 2, `${key}:now`, `${key}:before`, LIMIT, 1_760_000_000_000, 60_000, 1];
  const request = makeRequest(JSON.stringify(body));
  let count = 0;
  return {
    request: () => request,
    isRight: (status, reply) => {
      count += 1;
      return status === 200 && reply.latin1Slice() === `{"result":${LIMIT - count}}`;
    },
  };
}
