import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startBackends } from './backends.mjs';

/** Every bench, a file each in the folder of its service; arguments choose those whose name contains one of them. */
const BENCHES = [
  'kv-single-get',
  'kv-single-set',
  'kv-pipeline',
  'kv-transaction',
  'kv-script',
  'kv-large-get',
  'kv-large-set',
  'kv-latency',
  'kv-soak',
  'kv-idle-connections',
  'kv-fuzz',
  'vector-query',
  'vector-recall',
  'vector-upsert',
  'broker-produce',
  'broker-consume',
  'broker-hand-over',
  'broker-idle',
  'broker-failover',
  'queue-publish',
  'queue-deliver',
  'queue-slow-neighbour',
  'queue-delayed',
  'queue-workflow',
  'tenants',
  'floods',
];

/** What a bench is not told, it chooses. */
const NUMBERS = ['rounds', 'seconds', 'connections', 'requests', 'seed', 'first', 'vectors'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries([...NUMBERS, 'only'].map((name) => [name, { type: 'string' }])),
});
const { only, ...numbers } = values;
const load = { rounds: 5, only, ...Object.fromEntries(Object.entries(numbers).map(numeric)) };
const names = BENCHES.filter(
  (name) => positionals.length === 0 || positionals.some((word) => name.includes(word)),
);
if (names.length === 0) throw new Error(`no such bench; there are: ${BENCHES.join(', ')}`);
if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run build');
const chosen = await Promise.all(names.map((name) => import(`./${name.replace('-', '/')}.mjs`)));

const stop = await startBackends(new Set(chosen.flatMap((bench) => bench.backends)));
// the servers under load end with this process
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop().finally(() => process.exit(1)));
let right = true;
try {
  for (const bench of chosen) right = (await bench.run(load)) && right;
} finally {
  await stop();
}
process.exitCode = right ? 0 : 1;

function numeric([name, text]) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} must be a whole number`);
  return [name, value];
}
