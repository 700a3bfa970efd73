import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { promisify } from 'node:util';
import { services } from '../../src/services/index.js';
import { amount } from '../support/amount.js';

const run = promisify(execFile);

/** For all services together, each with its routes in turn; `npm run fuzz` takes ten minutes. */
const SECONDS = amount(8, 60);

/**
 * Whether a body stops the loop for seconds, as those that were found did, is what is held here. That every one of them stays
 * within its bound, whenever the collector comes, is `npm run fuzz`'s.
 */
const SLACK = '4';

const SERVICES = services.map(({ name }) => name);

test.each(SERVICES)('%s: whatever a request holds, the event loop goes on', async (service) => {
  const seed = String(randomInt(2 ** 31));
  const args = ['test/fuzz/run.mjs', '--service', service, '--seconds', String(SECONDS / SERVICES.length)];
  const { stdout } = await run(process.execPath, [...args, '--seed', seed, '--slack', SLACK], {
    timeout: 280_000,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { stdout?: string; stderr?: string }) => {
    throw new Error(`seed ${seed}:\n${error.stdout}${error.stderr}`);
  });
  expect(stdout).toMatch(/nothing wrong/);
});
