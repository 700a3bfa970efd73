import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { backends } from './backends.mjs';
import { ensureBuild, ensurePackages } from './ensure.mjs';
import { catchSignals, Interrupted, interruption } from './interruption.mjs';
import { findLeaks } from './leaks.mjs';
import { withLock } from './lock.mjs';
import { testPrograms } from './native/test-programs.mjs';
import { makeFolders, profile, root, stateDir } from './profile.mjs';
import { createProgress } from './progress.mjs';
import { runProgram } from './run-program.mjs';
import { areKept, backendsFor, dropBackends, freshBackends, startBackends } from './test-backends.mjs';

/** No run of the tests takes this long (13 min on two cores, ten times that on a busy one); one that hangs must end all the same. */
const jestLimitMs = 180 * 60_000;
/** jest has written its report and yet does not end: a test left something open. */
const jestExitLimitMs = 60_000;
/** The same for lint and types, which take 10 s and 20 s. */
const stepLimitMs = 10 * 60_000;
/** So many of the slowest files are named. */
const slowest = 10;
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

/** The files that take longest, which are where time can be saved. */
function showSlowest(results) {
  const rows = results
    .map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1000 }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, slowest);
  for (const { name, seconds } of rows)
    say('slowest', `${seconds.toFixed(1).padStart(6)} s  ${relative(root, name)}`);
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
  if (report.testResults.length > slowest) showSlowest(report.testResults);
  const skipped = report.numPendingTests + report.numTodoTests;
  say('jest', `${report.numPassedTests} passed, ${failed} failed, ${skipped} skipped, exit code ${code}`);
}

async function checkLeaks(set, names, mark) {
  const leaks = await findLeaks(set, names, mark);
  if (leaks.length > 0) throw new Error(leaks.join('\n'));
}

/** What is the same for every test: looked at when all of them are run. */
async function checkSources() {
  await step('lint', () =>
    runProgram('npm', ['run', '--silent', 'lint'], { cwd: root, timeoutMs: stepLimitMs }),
  );
  await step('types', () =>
    runProgram('npm', ['run', '--silent', 'typecheck'], { cwd: root, timeoutMs: stepLimitMs }),
  );
}

/** The backends that the tests need, up; those of an `npm run backends` as they are. */
async function readyBackends(set, names) {
  try {
    await startBackends(set, names, say);
  } catch (error) {
    if (interruption.aborted) throw new Interrupted();
    score.failed += 1;
    say('backends', `FAILED: ${error.message}`);
  }
}

async function run(jestArgs) {
  await withLock(join(stateDir, 'install.lock'), async () => {
    await ensurePackages((line) => say('packages', line));
    if (!(await builds())) return;
    say('build', 'up to date');
  });
  if (jestArgs.length === 0) await checkSources();
  const isKept = areKept();
  const set = isKept ? await backends('test') : await freshBackends();
  const names = backendsFor(jestArgs);
  const mark = `test-${randomBytes(8).toString('hex')}`;
  try {
    await readyBackends(set, names);
    const programs = await testPrograms(set.profile, say);
    const variables = {
      ...set.urls(names),
      ...programs,
      PORTICO_TEST_PROFILE: 'test',
      PORTICO_TEST_RUN: mark,
    };
    await runJest(jestArgs, { folder: set.profile.run, variables });
    await step('leaks', () => checkLeaks(set, names, `PORTICO_TEST_RUN=${mark}`));
  } finally {
    if (!isKept) {
      await dropBackends(set);
      say('backends', 'stopped');
    }
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
