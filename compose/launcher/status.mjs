import { existsSync } from 'node:fs';
import { backends } from '../backends/backends.mjs';
import { demandAccess } from '../state/access.mjs';
import { profile } from '../state/profile.mjs';
import { askGateway } from './ask-gateway.mjs';
import { runningGateway } from './gateway.mjs';

/** Nothing runs: what an init script's `status` says. */
const NOTHING_RUNS = 3;

/** @returns {Promise<string>} how the gateway answers the question whether it is ready */
async function readiness(url) {
  try {
    const answer = await askGateway(`${url}/readyz`, { timeoutMs: 5_000 });
    return answer.ok ? 'ready' : 'not ready: a service is down';
  } catch {
    return 'it does not answer';
  }
}

/**
 * What runs and answers.
 * @returns {Promise<{engine: string, rows: {name: string, isRunning: boolean, isWell: boolean, words: string}[]}>}
 */
export async function currentState() {
  const set = await backends('dev');
  const running = runningGateway(set.profile);
  const words = running === undefined ? 'down' : await readiness(running.report.operationsUrl);
  const own = Object.entries(await set.status()).map(([name, { running: isRunning, paused, ready }]) => {
    const isUsed = running === undefined || running.report.backends[name] === 'needed';
    const state = { true: 'answers', false: paused ? 'paused' : 'runs, and does not answer' }[String(ready)];
    const down = isUsed ? 'down' : `${running.report.backends[name]} by the configuration`;
    return {
      name,
      isRunning,
      isWell: isRunning ? ready : !isUsed || running === undefined,
      words: isRunning ? state : down,
    };
  });
  const gateway = {
    name: 'gateway',
    isRunning: running !== undefined,
    isWell: words === 'ready',
    words: running === undefined ? words : `${words}, ${running.report.url}`,
  };
  return { engine: set.engine, rows: [gateway, ...own] };
}

/** @returns {Promise<number>} the exit code */
export async function status() {
  demandAccess(profile('dev'));
  const isNew = !existsSync(profile('dev').run);
  const { engine, rows } = isNew ? { engine: '', rows: [] } : await currentState();
  if (!rows.some(({ isRunning }) => isRunning)) {
    console.log('Nothing runs.');
    return NOTHING_RUNS;
  }
  console.log(`Backends run ${engine === 'docker' ? 'in Docker' : 'as processes'}.`);
  for (const { name, words } of rows) console.log(`${name.padEnd(10)}${words}`);
  return rows.every(({ isWell }) => isWell) ? 0 : 1;
}
