import { z } from 'zod';
import { asMember, bodyOf, HOSTILE, many } from './bodies.mjs';

export const DIMENSION = 8;
export const TOPIC = 'fuzz-topic';
const SINK = 'https://fuzz.invalid/';

const vector = Array.from({ length: DIMENSION }, (_, i) => i + 0.5);
const sparseVector = { indices: [1, 2, 3], values: [0.5, 1, 2] };
const record = (i) => ({ id: `id${i}`, vector, sparseVector, metadata: { a: i }, data: 'x' });
const wide = Array.from({ length: 1_000 }, (_, i) => i + 0.25);

/**
 * What a route takes many of, by operation: where its elements need more than a schema says. Routes of a namespace have those
 * of the same without one.
 * @type {Readonly<Record<string, readonly import('./bodies.mjs').Shape[]>>}
 */
const VALID = {
  'vector.upsert': [
    many('records', record),
    many('records of one id', () => record(1)),
    many('sparse records', (i) => ({
      id: `w${i}`,
      vector,
      sparseVector: { indices: wide.map(Math.floor), values: wide },
    })),
    many('records with metadata', (i) => ({
      ...record(i),
      metadata: Object.fromEntries(wide.map((n) => [`k${n}`, n])),
    })),
    many('records with data', (i) => ({ ...record(i), data: 'word '.repeat(20_000) })),
  ],
  'vector.upsertData': [many('texts', (i) => ({ id: `id${i}`, data: 'some words' }))],
  'vector.query': [
    many('queries', () => ({ vector, sparseVector, topK: 1_000, filter: `${'a > 1 OR '.repeat(900)}a = 1` })),
  ],
  'vector.fetch': [many('ids', (i) => `id${i}`, { key: 'ids' }), many('numbers', (i) => i, { key: 'ids' })],
  'vector.delete': [many('ids', (i) => `id${i}`, { key: 'ids' }), many('ids alone', (i) => `id${i}`)],
  'broker.produce': [
    many('records', (i) => ({ topic: TOPIC, value: `v${i}` })),
    many('records with headers', () => ({
      topic: TOPIC,
      value: 'v',
      headers: wide.slice(0, 100).map((n) => ({ key: `k${n}`, value: 'v' })),
    })),
    many('topics', (i) => ({ topic: `none-${i}`, value: 'v' })),
  ],
  'broker.produceToTopic': [
    many('records', (i) => ({ value: `v${i}`, key: `k${i % 100}` })),
    many('headers', (i) => ({ key: `k${i}`, value: 'v' }), { key: 'headers', others: { value: 'v' } }),
  ],
  'broker.fetch': [
    many('offsets', (i) => ({ topic: TOPIC, partition: 0, offset: i }), {
      key: 'topicPartitionOffsets',
      others: { timeout: 1 },
    }),
    many('topics', (i) => ({ topic: `none-${i}`, partition: 0 }), {
      key: 'topicPartitionOffsets',
      others: { timeout: 1 },
    }),
  ],
  'broker.consumeTopics': [many('topics', (i) => `none-${i}`, { key: 'topics', others: { timeout: 1 } })],
  'broker.commit': [many('positions', (i) => ({ topic: TOPIC, partition: 0, offset: i }))],
  'broker.offsets': [many('partitions', () => ({ topic: TOPIC, partition: 0 }))],
  'queue.batch': [
    many('messages', (i) => ({ destination: `${SINK}${i}`, body: 'x', headers: { 'Upstash-Retries': '0' } })),
    many('wrong messages', () => ({ destination: 'nowhere' })),
    many('messages with headers', () => ({
      destination: SINK,
      headers: Object.fromEntries(wide.map((n) => [`Upstash-Forward-K${n}`, 'v'])),
    })),
    {
      name: 'headers that are a string',
      before: `[{"destination":"${SINK}","headers":"`,
      unit: () => 'x',
      after: '"}]',
    },
    {
      name: 'one message with headers',
      before: `[{"destination":"${SINK}","headers":{`,
      unit: (i) => `"Upstash-Forward-K${i}":"v",`,
      after: '"a":"b"}}]',
    },
  ],
  'queue.addEndpoints': [
    many('endpoints', (i) => ({ name: `n${i}`, url: `${SINK}${i}` }), { key: 'endpoints' }),
  ],
  'queue.deleteMessages': [many('ids', (i) => `msg_${i}`, { key: 'messageIds' })],
  'kv.pipeline': [
    many('commands', (i) => ['SET', `fuzz:${i % 10}`, i]),
    many('reads', () => ['GET', 'fuzz:1']),
    many('unknown commands', (i) => [`NO${i}`]),
    many('fields', (i) => ['HSET', 'fuzz:h', ...wide.slice(0, 100).flatMap((n) => [n, i])]),
  ],
  'kv.transaction': [
    many('commands', (i) => ['SET', `fuzz:${i % 10}`, 'x']),
    many('counts', () => ['INCR', 'fuzz:n']),
  ],
  'kv.command': [
    { ...many('arguments', (i) => `fuzz:${i}`), before: '["DEL",' },
    { ...many('numbers', (i) => i), before: '["SADD","fuzz:s",' },
    { name: 'pairs', before: '["MSET",', unit: (i) => `"fuzz:${i % 100}","v",`, after: '"fuzz:1","v"]' },
    { name: 'a value', before: '["SET","fuzz:v","', unit: () => 'x', after: '"]' },
    { name: 'a value of escapes', before: '["SET","fuzz:v","', unit: () => '\\n', after: '"]' },
    { name: 'an echo of quotes', before: '["ECHO","', unit: () => '\\"', after: '"]' },
    {
      name: 'a deep reply',
      before: '["EVAL","local t={} for i=1,7000 do t={t} end return t","0","',
      unit: () => 'x',
      after: '"]',
    },
    {
      name: 'a wide reply',
      before: '["EVAL","local t={} for i=1,2000000 do t[i]=1 end return t","0","',
      unit: () => 'x',
      after: '"]',
    },
  ],
};

/** Headers whose values are read as lists, expressions and the like. */
const HEADERS = [
  'Upstash-Label',
  'Upstash-Retry-Delay',
  'Upstash-Cron',
  'Upstash-Flow-Control-Value',
  'Upstash-Delay',
  'Upstash-Callback',
  'Upstash-Redact-Fields',
  'Upstash-Deduplication-Id',
  'Kafka-Auto-Commit-Interval',
  'X-Request-Id',
  'Upstash-Sync-Token',
  'Upstash-Response-Format',
  'Origin',
  'Content-Type',
  'Accept',
  'Cookie',
  'Range',
];
const HEADER_UNITS = ['a,', '1', '(', 'max(1,', '{a}', ' ', ';q=0,', '* ', '%41', '\xe9', '1+', '"', '=;'];
/** Below the gateway's limit for a request line and headers together. */
const HEAD_BYTES = 200 * 1024;

/** Requests that one connection sends at once: what a client without a token may, and one that is let in. */
const PIPELINED = [
  { name: '20,000 pipelined without a token', count: 20_000, authorization: '' },
  { name: '2,000 pipelined', count: 2_000 },
];
const SMALL_BYTES = 200;

const SEGMENTS = { namespace: 'fuzz', topic: TOPIC, timestamp: 'earliest', destination: SINK };

/**
 * A request of a route, but for its body.
 * @typedef {object} Target
 * @property {string} operationId
 * @property {string} method
 * @property {string} path below the gateway
 * @property {number} limit of its body, in bytes
 * @property {readonly import('./bodies.mjs').Shape[]} shapes what its body may be
 */

/** @returns {Target[]} */
export function targetsOf(service, { basePath, limitOf }) {
  return service.routes
    .filter(({ replyType }) => replyType === undefined)
    .flatMap((route) =>
      route.methods
        .filter((method) => method !== 'HEAD')
        .map((method) => ({
          operationId: route.operationId,
          method,
          path: basePath + pathOf(route),
          limit: limitOf(route.operationId),
          shapes: shapesOf(route),
        })),
    );
}

function pathOf({ documentedPath, path, operationId }) {
  if (operationId === 'kv.path') return '/echo/a';
  return (documentedPath ?? path).replace(/[:*]([a-zA-Z]+)/g, (_, name) => SEGMENTS[name] ?? 'fuzz');
}

function shapesOf({ operationId, request }) {
  const valid = VALID[operationId.replace(/InNamespace$/, '')] ?? [];
  const keys =
    request?.body === undefined
      ? []
      : keysOf(z.toJSONSchema(request.body, { io: 'input', unrepresentable: 'any' }));
  const members = keys.flatMap((key) => HOSTILE.map((value) => asMember(key, value)));
  return [...valid, ...HOSTILE, ...members];
}

/** Names of members that the body, or an element of it, may have. */
function keysOf(schema) {
  return [
    ...Object.keys(schema.properties ?? {}),
    ...[...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])].flatMap(keysOf),
  ].filter((key, i, all) => all.indexOf(key) === i);
}

/**
 * @typedef {object} Attack
 * @property {string} name
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {Buffer} [body]
 * @property {number} [count] of such requests, all sent before the first answer; one without it
 * @property {string} [authorization] in place of the run's
 */

/**
 * @param {Target} target @param {(n: number) => number} random a whole number below n
 * @returns {Attack}
 */
export function attackOn(target, random) {
  const { path, shapes, limit } = target;
  const kind = random(11);
  if (kind === 0) {
    const unit = ['/a', '%41', 'a/', '/%2F', '..', '%ff', 'é'][random(7)];
    const text = encodeURI(unit)
      .replaceAll('%25', '%')
      .repeat(Math.floor(HEAD_BYTES / 12));
    return { name: `path of ${unit}`, path: `${path}/${text}`, headers: {}, body: undefined };
  }
  if (kind === 1) {
    const unit = [
      'a=1&',
      'a&',
      '&',
      'all&',
      'messageIds=a,b,c&',
      'label=a&',
      'a[b]=1&',
      '%41=%41&',
      'count=1&cursor=1&',
    ][random(9)];
    const text = unit.repeat(Math.floor(HEAD_BYTES / unit.length));
    return { name: `query of ${unit}`, path: `${path}?${text}`, headers: {}, body: undefined };
  }
  if (kind === 2) {
    const name = HEADERS[random(HEADERS.length)];
    const unit = HEADER_UNITS[random(HEADER_UNITS.length)];
    const headers =
      random(3) === 0
        ? Object.fromEntries(
            Array.from({ length: 1_900 }, (_, i) => [`Upstash-Forward-K${i}`, unit.repeat(20)]),
          )
        : { [name]: unit.repeat(Math.floor(HEAD_BYTES / unit.length)).trim() };
    return { name: `headers ${name} of ${unit}`, path, headers, body: Buffer.from('{}') };
  }
  if (kind === 10) return pipelined(target, PIPELINED[random(PIPELINED.length)]);
  // those that are valid or hostile in general, and those of single members, are as many
  const few = shapes.filter(({ name }) => !name.includes(': '));
  const choice = random(2) === 0 ? few : shapes;
  const chosen = choice[random(choice.length)];
  const size = [limit, limit, 300_000, 3_000_000, 30_000, 2 ** random(27)][random(6)];
  return { name: chosen.name, path, headers: {}, body: bodyOf(chosen, Math.min(limit, size)) };
}

/** @returns {Attack} */
function pipelined({ path, shapes }, kind) {
  return { path, headers: {}, body: bodyOf(shapes[0], SMALL_BYTES), ...kind };
}

/** Attacks that are tried on every route in any case: the ones that ended gateways. @param {Target} target */
export function firstAttacks({ path, shapes, limit }) {
  const wanted = ['objects', 'numbers', 'different keys', 'a string of escapes'];
  return shapes
    .filter(({ name }) => wanted.includes(name) || name.startsWith('many '))
    .map((chosen) => () => ({
      name: chosen.name,
      path,
      headers: {},
      body: bodyOf(chosen, Math.min(limit, 4_000_000)),
    }));
}
