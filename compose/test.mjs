import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backends } from './backends.mjs';
import { forgetEngine } from './engine.mjs';
import { ensureBuild, ensurePackages } from './ensure.mjs';
import { catchSignals, Interrupted, interruption } from './interruption.mjs';
import { findLeaks } from './leaks.mjs';
import { withLock } from './lock.mjs';
import { testPrograms } from './native/test-programs.mjs';
import { portIsFree } from './ports.mjs';
import { forgetPorts, makeFolders, notePorts, profile, root, stateDir, withPortBase } from './profile.mjs';
import { createProgress } from './progress.mjs';
import { runProgram } from './run-program.mjs';

/** No run of the tests takes this long (13 min on two cores, ten times that on a busy one); one that hangs must end all the same. */
const jestLimitMs = 180 * 60_000;
/** jest has written its report and yet does not end: a test left something open. */
const jestExitLimitMs = 60_000;
/** The same for lint and types, which take 10 s and 20 s. */
const stepLimitMs = 10 * 60_000;
/** Another checkout's tests may have the first block of ports. */
const blocks = 20;
const blockSize = 20;

const say = createProgress();
const score = { passed: 0, failed: 0 };

/** One step that counts as one test. */
async function step(name, work) {
  const begin = Date.now();
  try {
    await work();
    score.passed += 1;
    say(name, `passed (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    return true;
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    score.failed += 1;
    say(name, `FAILED (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    console.error(error.output ?? error.message);
    return false;
  }
}

/** The first block of ports that nobody uses, noted for the programs that the tests start. */
async function chooseFreePorts() {
  const first = profile('test');
  makeFolders(first);
  if (process.env.PORTICO_PORT_BASE) return;
  forgetPorts(first);
  for (let block = 0; block < blocks; block += 1) {
    const p = withPortBase(profile('test'), 19070 + block * blockSize);
    const { gateway, ...ports } = p.ports;
    const free = await Promise.all(Object.values(ports).map(portIsFree));
    if (free.every(Boolean)) return notePorts(p);
  }
  throw new Error(
    `no free block of ports from 19070 to ${19070 + blocks * blockSize}; set PORTICO_PORT_BASE`,
  );
}

/** Fresh backends: what an earlier run left is ended and its data forgotten. */
async function freshBackends() {
  const before = await backends('test');
  await before.stop();
  await before.reset();
  await chooseFreePorts();
  return backends('test');
}

async function startBackends(set) {
  const results = await set.start(undefined, say);
  const failed = Object.entries(results).filter(([, row]) => row.state === 'failed');
  if (failed.length > 0) throw new Error(failed.map(([name, row]) => `${name}: ${row.reason}`).join('\n'));
}

/** Ends a jest that stays although its report is there; jest's exit code then says that the run has failed. */
function endWhenStuck(file, end) {
  let reportedAt;
  const timer = setInterval(() => {
    if (reportedAt === undefined && existsSync(file)) reportedAt = Date.now();
    if (reportedAt === undefined || Date.now() - reportedAt < jestExitLimitMs) return;
    clearInterval(timer);
    say('jest', 'does not end after its last test: a test left a connection, a timer or a server open');
    end();
  }, 500);
  return { cancel: () => clearInterval(timer) };
}

/** Runs jest in a session of its own, so that a Ctrl-C comes to this process alone, which ends it with all its children. */
async function runJest(args, env) {
  const file = join(env.folder, 'jest.json');
  rmSync(file, { force: true });
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const child = spawn(process.execPath, [jest, '--runInBand', '--json', `--outputFile=${file}`, ...args], {
    cwd: root,
    env: { ...process.env, ...env.variables },
    // With --json the report goes to standard output as well; the file has it.
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  });
  const end = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(end, jestLimitMs);
  const stuck = endWhenStuck(file, end);
  interruption.addEventListener('abort', end, { once: true });
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  stuck.cancel();
  interruption.removeEventListener('abort', end);
  if (interruption.aborted) throw new Interrupted();
  countJest(file, code);
}

function countJest(file, code) {
  if (!existsSync(file)) {
    score.failed += 1;
    return say('jest', `FAILED: no report, exit code ${code}`);
  }
  const report = JSON.parse(readFileSync(file, 'utf8'));
  // A file that could not even be loaded has no tests to count.
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  score.passed += report.numPassedTests;
  // A jest that had to be ended has no exit code; one with passed tests alone may fail all the same, by a setting.
  score.failed += code === null || (failed === 0 && code !== 0) ? failed + 1 : failed;
  const skipped = report.numPendingTests + report.numTodoTests;
  say('jest', `${report.numPassedTests} passed, ${failed} failed, ${skipped} skipped, exit code ${code}`);
}

async function checkLeaks(set, mark) {
  const leaks = await findLeaks(set, mark);
  if (leaks.length > 0) throw new Error(leaks.join('\n'));
}

async function run(jestArgs) {
  await withLock(join(stateDir, 'install.lock'), async () => {
    await ensurePackages((line) => say('packages', line));
    if (!(await builds())) return;
    say('build', 'up to date');
  });
  await step('lint', () =>
    runProgram('npm', ['run', '--silent', 'lint'], { cwd: root, timeoutMs: stepLimitMs }),
  );
  await step('types', () =>
    runProgram('npm', ['run', '--silent', 'typecheck'], { cwd: root, timeoutMs: stepLimitMs }),
  );
  const set = await freshBackends();
  const mark = `test-${randomBytes(8).toString('hex')}`;
  try {
    try {
      await startBackends(set);
    } catch (error) {
      if (interruption.aborted) throw new Interrupted();
      score.failed += 1;
      say('backends', `FAILED: ${error.message}`);
    }
    const programs = await testPrograms(set.profile, say);
    const variables = { ...set.urls(), ...programs, PORTICO_TEST_PROFILE: 'test', PORTICO_TEST_RUN: mark };
    await runJest(jestArgs, { folder: set.profile.run, variables });
    await step('leaks', () => checkLeaks(set, `PORTICO_TEST_RUN=${mark}`));
  } finally {
    await set.stop();
    await set.reset();
    forgetPorts(set.profile);
    forgetEngine(set.profile);
    say('backends', 'stopped');
  }
}

/** The tests need the built gateway; a build that fails is one failure, and the tests that need it say the rest. */
async function builds() {
  try {
    await ensureBuild((line) => say('build', line));
    return true;
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    score.failed += 1;
    say('build', `FAILED\n${error.output ?? error.message}`);
    return false;
  }
}

async function main() {
  catchSignals((cause) => say('stop', cause));
  const p = profile('test');
  makeFolders(p);
  const waiting = (pid) =>
    say('test', `another npm test runs in this checkout (process ${pid}); waiting for it`);
  try {
    await withLock(join(p.run, 'test.lock'), () => run(process.argv.slice(2)), waiting);
  } catch (error) {
    if (error instanceof Interrupted) console.error('Interrupted.');
    else console.error(error.stack);
    score.failed += 1;
  }
  console.log(`${score.passed} passed, ${score.failed} failed`);
  process.exit(score.failed === 0 ? 0 : 1);
}

main();
