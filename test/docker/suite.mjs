import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { catchSignals, interruption } from '../../compose/processes/interruption.mjs';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { checkCompose } from './check-compose.mjs';
import { checkDev } from './check-dev.mjs';
import { checkExamples } from './check-examples.mjs';
import { checkImage } from './check-image.mjs';
import { checkStart } from './check-start.mjs';
import { cache, startEngine } from './engine.mjs';
import { standIn } from './images.mjs';
import { createScore } from './score.mjs';

const usage = `npm run test:docker                     everything below, on Debian's oldest and newest engine (root)
npm run test:docker -- --engine old     on Engine 20.10 alone; also: current, rootless, here (the engine that docker finds)
npm run test:docker -- --only start     one group; also: image, compose, dev, examples
npm run test:docker -- --tests          the whole npm test with its backends in containers, too (20 minutes)`;

const groups = {
  image: checkImage,
  start: checkStart,
  compose: checkCompose,
  dev: checkDev,
  examples: checkExamples,
};

function options() {
  const { values } = parseArgs({
    options: {
      engine: { type: 'string', multiple: true, default: ['old', 'current'] },
      only: { type: 'string', multiple: true, default: Object.keys(groups) },
      tests: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  return values;
}

/** @typedef {import('./score.mjs').createScore} CreateScore */
/**
 * What a group of checks gets.
 * @typedef {object} Bench
 * @property {Record<string, string>} env of the engine's client, and a state folder and ports of its own
 * @property {string} work a folder
 * @property {ReturnType<CreateScore>} score
 */

async function onEngine(name, { only, tests }, score) {
  mkdirSync(join(cache, 'work'), { recursive: true });
  const work = mkdtempSync(join(cache, 'work/'));
  // tests of data of older programs run these natively, as a user without rights
  chmodSync(work, 0o755);
  const engine = name === 'here' ? { env: {}, stop: async () => undefined } : await startEngine(name, work);
  const env = {
    ...engine.env,
    PORTICO_STATE_DIR: join(work, 'state'),
    PORTICO_PORT_BASE: process.env.PORTICO_PORT_BASE ?? '28070',
    PORTICO_HTTP_PORT: process.env.PORTICO_HTTP_PORT ?? '28060',
    PORTICO_BACKENDS: 'docker',
  };
  mkdirSync(env.PORTICO_STATE_DIR);
  try {
    const version = await runProgram('docker', ['version', '--format', '{{.Server.Version}}'], { env });
    const compose = await runProgram('docker', ['compose', 'version', '--short'], { env });
    score.say(`engine ${version.trim()}, Compose ${compose.trim()}`);
    await standIn(env, score.say);
    for (const group of only) await groups[group]({ env, work, score });
    if (tests) await score.check('npm test', () => wholeSuite(env));
  } finally {
    // what was built before has lost its name to what was built now
    if (name !== 'here')
      await runProgram('docker', ['image', 'prune', '--force'], { env }).catch(() => undefined);
    await engine.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

/** The product's tests, on backends in containers. */
async function wholeSuite(env) {
  await runProgram('npm', ['test'], {
    env,
    timeoutMs: 120 * 60_000,
    onLine: (line) => console.log(`  ${line}`),
  });
}

/** What the command line asks for, and its exit code. */
export async function main() {
  const { engine, only, tests, help } = options();
  if (help) return console.log(usage);
  const score = createScore();
  catchSignals((cause) => score.say(cause));
  for (const name of engine) {
    if (interruption.aborted) break;
    await score.check(`all of it on the ${name} engine`, () => onEngine(name, { only, tests }, score));
  }
  console.log(`${score.counts.passed} passed, ${score.counts.failed} failed`);
  process.exitCode = score.counts.failed === 0 && !interruption.aborted ? 0 : 1;
}
