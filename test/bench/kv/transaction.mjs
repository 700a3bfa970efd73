import { compare } from '../frame.mjs';
import { lasting } from '../load.mjs';
import { post } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

/**
 * Transactions of 10 commands. Each connection has keys of its own, whose values it knows, and all of them count one
 * shared key at the beginning and at the end: other numbers than n and n + 1 there are an interleaving.
 * @param {import('../frame.mjs').Load} load
 */
export function run(load) {
  return withKvServers(async ({ prefix, token, reference, gateway }) => {
    const contenders = [
      {
        name: 'node:http + ioredis',
        server: reference,
        session: lasting((i) => session(`${prefix}reference:`, i, (body) => post('/multi-exec', body))),
      },
      {
        name: 'Portico',
        server: gateway,
        session: lasting((i) =>
          session(`${prefix}portico:`, i, (body) => post('/kv/multi-exec', body, { token })),
        ),
        goal: { perSecond: 12_000 },
      },
    ];
    return compare({ title: 'kv: /multi-exec of 10 commands', contenders, connections: 50 }, load);
  });
}

function session(prefix, connection, request) {
  let count = 0;
  const shared = `${prefix}shared`;
  const counter = `${prefix}${connection}:counter`;
  const value = `${prefix}${connection}:value`;
  return {
    request: () => {
      count += 1;
      const first = `${connection}:${count}:first`;
      const second = `${connection}:${count}:second`;
      const rows =
        `[["incr","${shared}"],["incr","${counter}"],["set","${value}","${first}"],["get","${value}"],["get","${counter}"],` +
        `["incr","${counter}"],["set","${value}","${second}"],["get","${value}"],["get","${counter}"],["incr","${shared}"]]`;
      return request(rows);
    },
    isRight: (status, body) => status === 200 && isRight(JSON.parse(body.toString()), connection, count),
  };
}

function isRight(entries, connection, count) {
  if (!Array.isArray(entries) || entries.length !== 10) return false;
  const results = entries.map(({ result }) => result);
  const own = [
    2 * count - 1,
    'OK',
    `${connection}:${count}:first`,
    String(2 * count - 1),
    2 * count,
    'OK',
    `${connection}:${count}:second`,
    String(2 * count),
  ];
  return own.every((expected, i) => results[i + 1] === expected) && results[9] === results[0] + 1;
}
