import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted } from '../processes/interruption.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { root, stateDir } from '../state/profile.mjs';

const names = ['redis', 'postgres', 'kafka', 'rabbitmq'];
/** The first start pulls more than a gigabyte of images. */
const startLimitMs = 10 * 60_000;
const healthLimitSeconds = 180;
const stopLimitMs = 120_000;
/** Some of the checks that compose.yaml asks for. */
const checkedLimitMs = 60_000;

/** The addresses on the host; inside the containers the ports are the programs' own. */
function addresses({ p, secrets }) {
  const { redis, postgres, kafka, rabbitmq } = p.ports;
  return {
    redis: { PORTICO_REDIS_URL: `redis://default:${secrets.PORTICO_REDIS_PASSWORD}@127.0.0.1:${redis}` },
    postgres: {
      PORTICO_DATABASE_URL: `postgres://portico:${secrets.PORTICO_POSTGRES_PASSWORD}@127.0.0.1:${postgres}/portico`,
    },
    kafka: { PORTICO_KAFKA_BROKERS: `127.0.0.1:${kafka}` },
    rabbitmq: {
      PORTICO_RABBITMQ_URL: `amqp://portico:${secrets.PORTICO_RABBITMQ_PASSWORD}@127.0.0.1:${rabbitmq}`,
    },
  };
}

/** What compose.yaml asks of the environment. */
function variables({ p, secrets }) {
  const ports = {
    PORTICO_REDIS_PORT: p.ports.redis,
    PORTICO_POSTGRES_PORT: p.ports.postgres,
    PORTICO_KAFKA_PORT: p.ports.kafka,
    PORTICO_RABBITMQ_PORT: p.ports.rabbitmq,
    PORTICO_RABBITMQ_MANAGEMENT_PORT: p.ports.rabbitmqManagement,
  };
  return {
    ...secrets,
    ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
  };
}

function known(list = names) {
  const wrong = list.find((name) => !names.includes(name));
  if (wrong !== undefined) throw new Error(`unknown backend '${wrong}': use ${names.join(', ')}`);
  return list;
}

const upArguments = (list) => ['up', '-d', '--wait', '--wait-timeout', String(healthLimitSeconds), ...list];

/** All at once, which is quicker; when that fails, one by one. */
async function startTogether(compose, list, progress) {
  const begin = Date.now();
  try {
    await compose(upArguments(list), startLimitMs, true, (line) => progress('docker', line));
    return Object.fromEntries(list.map((name) => [name, { state: 'started', ms: Date.now() - begin }]));
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return startSingly(compose, list);
  }
}

/**
 * One backend after the other, to find out which one it is that does not start.
 * @throws {Error} when none of several starts: then it is the engine, or its file, and no backend
 */
async function startSingly(compose, list) {
  const results = {};
  for (const name of list) {
    const begin = Date.now();
    try {
      await compose(upArguments([name]), startLimitMs);
      results[name] = { state: 'started', ms: Date.now() - begin };
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      results[name] = {
        state: 'failed',
        reason: await reasonOf(compose, name, error),
        ms: Date.now() - begin,
      };
    }
  }
  const rows = Object.values(results);
  if (rows.length > 1 && rows.every((row) => row.state === 'failed'))
    throw new Error(
      `no backend starts with Docker (PORTICO_BACKENDS=native does without): ${rows[0].reason}`,
    );
  return results;
}

/** In one line: what the engine refused, and what the container said last, which says more than that it is not healthy. */
async function reasonOf(compose, name, error) {
  const refused = /Error response from daemon: ([^|]*)/.exec(error.message)?.[1]?.trim();
  const words = await compose(['logs', '--no-color', '--no-log-prefix', '--tail', '3', name], 15_000).catch(
    () => '',
  );
  const lines = [refused === undefined ? error.message : `Docker: ${refused}`, ...words.split('\n')];
  return lines.filter((line) => line.trim() !== '').join(' | ');
}

/** `docker compose ps`, one JSON object a line. */
function parseRows(text) {
  const rows = text.split('\n').filter((line) => line.startsWith('{'));
  return Object.fromEntries(rows.map((line) => JSON.parse(line)).map((row) => [row.Service, row]));
}

/** What stood still for long counts as unhealthy until its next check, and `up --wait` would give up at once. */
async function untilChecked(running, name) {
  for (const deadline = Date.now() + checkedLimitMs; Date.now() < deadline; await sleep(500)) {
    const { State, Health } = (await running())[name] ?? {};
    if (State !== 'running' || Health !== 'unhealthy') return;
  }
}

/**
 * The four backends as containers of compose.yaml.
 * @param {import('../native/backend.mjs').Context} context
 * @returns {import('../native/backend-set.mjs').BackendSet}
 */
export function dockerBackends(context) {
  const { p } = context;
  // The state folder tells two checkouts apart, which would share containers and volumes by the file's own name.
  const project = `portico-${p.name}-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`;
  const prefix = ['compose', '-p', project, '-f', join(root, 'compose/compose.yaml')];
  const compose = (args, timeoutMs, mayInterrupt = true, onLine = undefined) =>
    runProgram('docker', [...prefix, ...args], {
      env: variables(context),
      cwd: root,
      timeoutMs,
      mayInterrupt,
      onLine,
    });
  const running = async () => parseRows(await compose(['ps', '-a', '--format', 'json'], 15_000, false));
  const single = (verb) => async (name) => {
    await compose([verb, ...known([name])], 30_000, false);
  };
  return {
    async start(list, progress = () => undefined) {
      const wanted = known(list);
      const before = await running();
      const down = wanted.filter(
        (name) => before[name]?.Health !== 'healthy' || before[name]?.State !== 'running',
      );
      for (const name of down) if (before[name]?.State === 'paused') await compose(['unpause', name], 30_000);
      await Promise.all(down.map((name) => untilChecked(running, name)));
      const started = down.length === 0 ? {} : await startTogether(compose, down, progress);
      return Object.fromEntries(wanted.map((name) => [name, started[name] ?? { state: 'running', ms: 0 }]));
    },
    async stop(list) {
      const wanted = known(list);
      const before = await running();
      const args = wanted.length === names.length ? ['down'] : ['rm', '--stop', '--force', ...wanted];
      await compose(args, stopLimitMs, false);
      return Object.fromEntries(wanted.map((name) => [name, before[name] ? 'stopped' : 'absent']));
    },
    kill: single('kill'),
    pause: single('pause'),
    resume: single('unpause'),
    async status() {
      const rows = await running();
      const state = (row) => ({
        running: row?.State === 'running' || row?.State === 'paused',
        paused: row?.State === 'paused',
        ready: row?.State === 'running' && row?.Health === 'healthy',
      });
      return Object.fromEntries(names.map((name) => [name, state(rows[name])]));
    },
    async reset() {
      await compose(['down', '--volumes'], stopLimitMs, false);
    },
    urls: (list) => Object.assign({}, ...known(list).map((name) => addresses(context)[name])),
  };
}
