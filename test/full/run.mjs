import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

// npm run test:full: what takes longer than npm test may. Root, on Debian or kin, for the systems and engines that it makes.

const grown = [
  'hostile-bodies',
  'broker/redelivery',
  'kv/fuzz',
  ...['queue/big-messages', 'queue/crash', 'queue/many-rows'],
  ...['calls', 'children', 'faults', 'many-runs', 'resume-crash', 'two-gateways'].map(
    (name) => `queue/workflow/${name}`,
  ),
].map((name) => `test/integration/${name}.test.ts`);

const parts = [
  { args: ['test', '--', 'test/full'] },
  // those that do more when there is time
  { args: ['test', '--', ...grown], env: { PORTICO_TEST_FULL: 'yes' } },
  { args: ['test:cold'] },
  { args: ['test:docker', '--', '--engine', 'old'] },
  { args: ['test:docker', '--', '--engine', 'current', '--tests'] },
  { args: ['soak', '--', '--minutes', '5'] },
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
