import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { promisify } from 'node:util';
import { amount } from '../../support/amount.js';

const run = promisify(execFile);

/** Enough for each kind of request and for some of the heavy ones; `npm run bench -- kv-fuzz` makes 100,000. */
const REQUESTS = amount(500, 5_000);

/** Runs the fuzz driver on a gateway and a Redis of its own. @throws with what it printed: the failing requests, and how to make them again */
async function fuzz(seed: number): Promise<string> {
  const args = ['test/bench/run.mjs', 'kv-fuzz', '--requests', String(REQUESTS), '--seed', String(seed)];
  try {
    const { stdout } = await run(process.execPath, args, { timeout: 240_000, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`seed ${seed}:\n${stdout}${stderr}`);
  }
}

test('random requests: none is answered wrongly, none hangs, none disturbs another', async () => {
  const outputs = await Promise.all([fuzz(1), fuzz(randomInt(2 ** 31))]);
  for (const output of outputs) expect(output).toMatch(/nothing wrong/);
});
