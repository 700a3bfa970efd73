import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import * as kvSingleGet from './kv-single-get.mjs';

/** Every bench by its name; arguments choose those whose name contains one of them. */
const BENCHES = { 'kv-single-get': kvSingleGet };

const VARIABLES = {
  redis: 'PORTICO_REDIS_URL',
  postgres: 'PORTICO_DATABASE_URL',
  kafka: 'PORTICO_KAFKA_BROKERS',
  rabbitmq: 'PORTICO_RABBITMQ_URL',
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '64' },
  },
});
const load = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: Number(values.connections),
};
const chosen = Object.entries(BENCHES).filter(
  ([name]) => positionals.length === 0 || positionals.some((word) => name.includes(word)),
);
if (chosen.length === 0) throw new Error(`no such bench; there are: ${Object.keys(BENCHES).join(', ')}`);
if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run build');

const stop = await startBackends(new Set(chosen.flatMap(([, bench]) => bench.backends)));
let right = true;
try {
  for (const [, bench] of chosen) right = (await bench.run(load)) && right;
} finally {
  await stop();
}
process.exitCode = right ? 0 : 1;

/** Starts what the environment does not name; resolves to what ends it again. */
async function startBackends(names) {
  const missing = [...names].filter((name) => !process.env[VARIABLES[name]]);
  if (missing.length === 0) return async () => undefined;
  const { backends } = await import('../../compose/backends.mjs');
  const own = await backends('test');
  await own.start(missing);
  Object.assign(process.env, await own.urls());
  return () => own.stop(missing);
}
