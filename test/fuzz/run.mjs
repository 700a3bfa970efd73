import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cards } from '../../compose/state/services.mjs';
import { startBackends } from '../bench/backends.mjs';
import { compiled } from '../support/compiled.mjs';
import { attackOn, DIMENSION, firstAttacks, TOPIC, targetsOf } from './attacks.mjs';
import { startWatched } from './gateway.mjs';
import { removeTraces } from './traces.mjs';

const MIB = 1024 * 1024;
/** How long the loop may stand still, in ms, beside what it does when nothing is sent. */
const STOP_MS = 100;
/** What the probe's work took on the machine where that is fair: slower ones get as much longer. */
const USUAL_MS = 22;
const RSS_BYTES = 64 * MIB;
const RSS_FACTOR = 4;
const IDLE_MS = 2_000;
const REPLY_MS = 90_000;
const NAMES = { schema: 'portico_fuzz', prefix: 'fuzz', keys: 'fuzz:*', topic: TOPIC };

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string' },
    // how many times the bounds a stop or a rise may be
    slack: { type: 'string', default: '1' },
    service: { type: 'string' },
    only: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed ?? randomInt(2 ** 31));
const seconds = Number(values.seconds);
const slack = Number(values.slack);
if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run build');
const stopBackends = await startBackends(new Set(['redis', 'postgres', 'kafka', 'rabbitmq']));
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => stopBackends().finally(() => process.exit(1)));
try {
  process.exitCode = (await fuzz()) ? 0 : 1;
} finally {
  await removeTraces(NAMES);
  await stopBackends();
}

async function fuzz() {
  const { services } = await compiled('fuzz', ['services/index.js']);
  const chosen = services.filter(({ name }) => values.service === undefined || name === values.service);
  console.log(`hostile requests for ${seconds} s, seed ${seed}`);
  const problems = [];
  for (const service of chosen) problems.push(...(await fuzzService(service, seconds / chosen.length)));
  for (const problem of problems.slice(0, 50)) console.log(`PROBLEM ${problem}`);
  console.log(problems.length === 0 ? 'nothing wrong' : `${problems.length} PROBLEMS (seed ${seed})`);
  // as each part of npm run test:full ends
  console.log(`${problems.length === 0 ? 1 : 0} passed, ${problems.length} failed`);
  return problems.length === 0;
}

/** What the first of a service's credentials logs in with. */
function authorizationOf({ card }) {
  const [login, password] = card.credentials;
  if (login.made.as !== 'name') return `Bearer ${login.inTests}`;
  return `Basic ${Buffer.from(`${login.inTests}:${password.inTests}`).toString('base64')}`;
}

/** Each service has a gateway of its own: what stops it is told apart. */
async function fuzzService(service, forSeconds) {
  const random = randomOf(seed);
  const section = sectionOf(service.name);
  const config = service.config.parse({ ...section, enabled: true });
  const targets = targetsOf(service, {
    basePath: service.mounts(config)[0]?.path ?? '',
    limitOf: (operationId) => bodyLimit(service.name, config, operationId),
  }).filter(({ operationId }) => values.only === undefined || operationId.includes(values.only));
  const run = {
    ...(await start(service.name, section)),
    authorization: authorizationOf(service),
    problems: [],
    requests: 0,
    stopMs: 0,
    worst: '',
    rss: 0,
    statuses: new Map(),
  };
  const end = performance.now() + forSeconds * 1_000;
  const first = shuffled(
    targets.flatMap((target) => firstAttacks(target).map((make) => ({ target, make }))),
    random,
  );
  for (let i = 0; performance.now() < end; i++) {
    const target = targets[random(targets.length)];
    const next = i % 2 === 0 ? first.pop() : undefined;
    const make = next?.make ?? (() => attackOn(target, random));
    await tryOne(run, { target: next?.target ?? target, attack: make() }, () => start(service.name, section));
    if (run.problems.length > 100) break;
  }
  await run.gateway.stop();
  const statuses = [...run.statuses]
    .sort()
    .map(([status, count]) => `${count} x ${status}`)
    .join(', ');
  console.log(
    `${service.name.padEnd(7)} ${run.requests} requests (${statuses}); longest stop ${run.stopMs.toFixed(0)} ms (idle ${run.idleMs.toFixed(0)} ms, allowed ${run.allowedMs.toFixed(0)} ms)${run.worst}; ` +
      `RSS at most ${(run.rss / MIB).toFixed(0)} MiB more than before; ${first.length} of the first attacks left`,
  );
  return run.problems;
}

async function start(name, section) {
  const document = { http: { port: 0 }, log: { level: 'info' } };
  for (const other of Object.keys(cards)) document[other] = other === name ? section : { enabled: false };
  const gateway = await startWatched(document, environment());
  const scale = Math.max(1, (await gateway.calibrate()) / USUAL_MS);
  await gateway.begin();
  await sleep(IDLE_MS);
  const { stopMs: idleMs } = await gateway.end();
  return { gateway, idleMs, allowedMs: slack * scale * STOP_MS + idleMs };
}

async function tryOne(run, { target, attack }, restart) {
  const { gateway } = run;
  const about = `${target.method} ${target.operationId}, ${attack.name}, ${((attack.body?.length ?? 0) / MIB).toFixed(2)} MiB`;
  const size = (attack.body?.length ?? 0) * (attack.count ?? 1);
  try {
    const before = await gateway.begin();
    const startedAt = performance.now();
    const sent = attack.count === undefined ? send : sendAtOnce;
    const status = await sent(gateway.port, run.authorization, target, attack);
    const ms = performance.now() - startedAt;
    const { stopMs, peak } = await gateway.end();
    const grown = peak - before;
    run.requests++;
    run.statuses.set(status, (run.statuses.get(status) ?? 0) + 1);
    run.rss = Math.max(run.rss, grown);
    if (stopMs > run.stopMs) Object.assign(run, { stopMs, worst: ` by ${about}` });
    if (values.verbose)
      console.log(
        `${about}: ${status} after ${ms.toFixed(0)} ms, stop ${stopMs.toFixed(0)} ms, RSS +${(grown / MIB).toFixed(0)} MiB`,
      );
    if (stopMs > run.allowedMs)
      run.problems.push(`${about}: the loop stood still for ${stopMs.toFixed(0)} ms`);
    if (grown > slack * (RSS_BYTES + RSS_FACTOR * size))
      run.problems.push(`${about}: RSS rose by ${(grown / MIB).toFixed(0)} MiB`);
    if (status === 500) run.problems.push(`${about}: 500`);
  } catch (error) {
    run.problems.push(`${about}: ${error.message.slice(0, 500)}`);
    await gateway.stop();
    Object.assign(run, await restart());
  }
}

/** @returns {Promise<number | string>} its status, or how the connection ended */
function send(port, login, { method }, { path, headers, body }) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      port,
      method,
      path,
      agent: false,
      headers: {
        Authorization: login,
        ...headers,
        ...(body === undefined ? {} : { 'Content-Length': body.length }),
      },
    });
    const late = setTimeout(() => {
      reject(new Error(`no answer within ${REPLY_MS} ms`));
      request.destroy();
    }, REPLY_MS);
    request.once('close', () => clearTimeout(late));
    request.once('error', (error) => resolve(error.code ?? error.message));
    request.once('response', (response) => {
      response.on('data', () => undefined);
      response.once('end', () => resolve(response.statusCode));
      response.once('error', (error) => resolve(error.code ?? error.message));
    });
    request.end(body);
  });
}

/** Sends a request many times before it reads an answer. @returns {Promise<number | string>} the first's status */
function sendAtOnce(port, login, { method }, { path, headers, body, count, authorization = login }) {
  const head = (more) =>
    [
      `${method} ${path} HTTP/1.1`,
      'Host: fuzz',
      `Authorization: ${authorization}`,
      `Content-Length: ${body.length}`,
      ...Object.entries({ ...headers, ...more }).map(([name, value]) => `${name}: ${value}`),
    ].join('\r\n');
  const request = (more) => Buffer.concat([Buffer.from(`${head(more)}\r\n\r\n`, 'latin1'), body]);
  const all = Buffer.concat([...Array(count - 1).fill(request()), request({ Connection: 'close' })]);
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(all));
    const late = setTimeout(() => {
      reject(new Error(`no end of the answers within ${REPLY_MS} ms`));
      socket.destroy();
    }, REPLY_MS);
    let first = '';
    socket.on('data', (bytes) => {
      first ||= bytes.toString('latin1', 0, 100);
    });
    socket.once('error', (error) => {
      first ||= error.code ?? error.message;
    });
    socket.once('close', () => {
      clearTimeout(late);
      const status = /^HTTP\/1.1 (\d{3}) /.exec(first)?.[1];
      resolve(status === undefined ? first || 'no answer' : Number(status));
    });
  });
}

function environment() {
  const names = [
    'PORTICO_REDIS_URL',
    'PORTICO_DATABASE_URL',
    'PORTICO_KAFKA_BROKERS',
    'PORTICO_RABBITMQ_URL',
  ];
  return {
    ...Object.fromEntries(names.map((name) => [name, process.env[name]])),
    ...Object.fromEntries(
      Object.values(cards).flatMap(({ credentials }) =>
        credentials.map(({ variable, inTests }) => [variable, inTests]),
      ),
    ),
  };
}

function sectionOf(name) {
  if (name === 'vector')
    return {
      database: { schema: NAMES.schema },
      indexes: [{ name: 'fuzz', type: 'HYBRID', dimension: DIMENSION, embedding: { sparse: true } }],
    };
  if (name === 'broker') return { clusters: [{ topics: [TOPIC] }] };
  return name === 'queue'
    ? { schema: `${NAMES.schema}_queue`, prefix: NAMES.prefix, maxSchedules: 100_000 }
    : {};
}

function bodyLimit(name, config, operationId) {
  if (name === 'queue') return operationId === 'queue.batch' ? config.maxBatchSize : config.maxMessageSize;
  const [instance] = { kv: config.databases, vector: config.indexes, broker: config.clusters }[name] ?? [
    config,
  ];
  return instance.bodyLimit;
}

/** The same numbers for the same seed. */
function randomOf(start) {
  let state = start >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function shuffled(list, random) {
  for (let i = list.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}
