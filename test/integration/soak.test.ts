import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** In `npm test` half a minute, of which the load takes twelve seconds; `npm run test:full` has five minutes. */
const SOAK = [
  ...['test/soak/run.mjs', '--seconds', '9', '--workers', '1'],
  ...['--every', '9', '--lasts', '1', '--faults', 'pause redis'],
];

test('a mixed load with a fault leaves nothing behind and loses nothing', async () => {
  try {
    const { stdout } = await run(process.execPath, SOAK, { timeout: 280_000 });
    expect(stdout).toMatch(/^\d+ passed, 0 failed$/m);
  } catch (error) {
    const {
      stdout = '',
      stderr = '',
      message,
    } = error as { stdout?: string; stderr?: string; message: string };
    throw new Error(`${message}\n${stdout}${stderr}`);
  }
});
