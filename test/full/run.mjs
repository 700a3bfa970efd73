import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

// npm run test:full: what takes longer than npm test may. Root, on Debian or kin, for the systems and engines that it makes.

const parts = [
  { args: ['test', '--', 'test/full'] },
  { args: ['test', '--', 'test/integration/queue/many-rows.test.ts'], env: { PORTICO_TEST_ROWS: '1000000' } },
  {
    args: ['test', '--', 'test/integration/queue/workflow/many-runs.test.ts'],
    env: { PORTICO_TEST_ROWS: '1000000' },
  },
  {
    args: ['test', '--', 'test/integration/queue/workflow/faults.test.ts'],
    env: { PORTICO_TEST_RUNS: '10000', PORTICO_TEST_KILLS: '50' },
  },
  {
    args: ['test', '--', 'test/integration/queue/workflow/calls.test.ts'],
    env: { PORTICO_TEST_MIB: '5' },
  },
  {
    args: ['test', '--', 'test/integration/queue/workflow/resume-crash.test.ts'],
    env: { PORTICO_TEST_KILLS: '30' },
  },
  {
    args: ['test', '--', 'test/integration/queue/workflow/two-gateways.test.ts'],
    env: { PORTICO_TEST_ROUNDS: '100' },
  },
  {
    args: ['test', '--', 'test/integration/queue/workflow/children.test.ts'],
    env: { PORTICO_TEST_ROUNDS: '1000' },
  },
  { args: ['test:cold'] },
  { args: ['test:docker', '--', '--engine', 'old'] },
  { args: ['test:docker', '--', '--engine', 'current', '--tests'] },
  // ten minutes
  { args: ['fuzz'] },
];

/** @returns {Promise<{passed: number, failed: number}>} as the part's last line says; a part that says nothing has failed */
async function run({ args, env }) {
  const child = spawn('npm', ['run', '--silent', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  let counts = { passed: 0, failed: 1 };
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line);
    const [, passed, failed] = /^(\d+) passed, (\d+) failed/.exec(line) ?? [];
    if (failed !== undefined) counts = { passed: Number(passed), failed: Number(failed) };
  }
  return { ...counts, failed: (await ended) === 0 ? counts.failed : Math.max(1, counts.failed) };
}

const all = { passed: 0, failed: 0 };
for (const part of parts) {
  const begun = Date.now();
  const { passed, failed } = await run(part);
  const minutes = ((Date.now() - begun) / 60_000).toFixed(1);
  console.log(
    `== ${part.args.filter((arg) => arg !== '--').join(' ')}: ${passed} passed, ${failed} failed, ${minutes} min`,
  );
  all.passed += passed;
  all.failed += failed;
}
console.log(`${all.passed} passed, ${all.failed} failed`);
process.exitCode = all.failed === 0 ? 0 : 1;
