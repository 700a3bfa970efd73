import { randomBytes } from 'node:crypto';
import { cpus, totalmem } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { backends } from '../../compose/backends/backends.mjs';
import { ensureBuild, ensurePackages } from '../../compose/install/ensure.mjs';
import { testPrograms } from '../../compose/native/test-programs.mjs';
import { catchSignals, Interrupted, interruption } from '../../compose/processes/interruption.mjs';
import { withLock } from '../../compose/processes/lock.mjs';
import { createProgress } from '../../compose/processes/progress.mjs';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { checkoutLock, makeFolders, profile, root } from '../../compose/state/profile.mjs';
import { areKept, dropBackends, makeRoom, startBackends } from './backends.mjs';
import { runJest } from './jest.mjs';
import { backendsFor, testLanes } from './lanes.mjs';
import { findLeaks } from './leaks.mjs';

/** Lint and types take 10 s and 20 s on two cores; one that hangs must end all the same. */
const stepLimitMs = 10 * 60_000;
/** So many of the slowest files are named. */
const slowest = 10;
/**
 * Lanes at once: tests wait for half of their time, and the longest lanes decide when all are done, so they begin first; others
 * when the cores have had so much time to spare. Eight at once on two cores were a load of 20, in which what has to happen
 * within a second does not. Each holds up to 2 GB of memory.
 */
const most = Math.max(1, Math.floor(totalmem() / 2 ** 31));
const fewestLanes = Math.min(2 + cpus().length, most);
const mostLanes = Math.min(9, most);
const spareShare = 0.15;
/** Over so long; a lane's backends take most of it to start. */
const lookMs = 10_000;
const say = createProgress();
/** @param {string} lane */
const profileOf = (lane) => `test-${lane}`;
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

/** The files that take longest, which are where time can be saved. */
function showSlowest(results) {
  const rows = results
    .map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1000 }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, slowest);
  for (const { name, seconds } of rows)
    say('slowest', `${seconds.toFixed(1).padStart(6)} s  ${relative(root, name)}`);
}

async function checkLeaks(set, names, mark) {
  const leaks = await findLeaks(set, names, mark);
  if (leaks.length > 0) throw new Error(leaks.join('\n'));
}

/** What is the same for every test: looked at when all of them are run, while backends start. */
async function checkSources() {
  for (const [name, script] of Object.entries({ lint: 'lint', types: 'typecheck' }))
    await step(name, () =>
      runProgram('npm', ['run', '--silent', script], { cwd: root, timeoutMs: stepLimitMs }),
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

/** Ports that tests take for servers of their own; a second run on this machine, beside this one, gets others. */
const [firstPort = 12_100, lastPort = 17_900] = (process.env.PORTICO_TEST_PORTS ?? '')
  .split('-')
  .filter(Boolean)
  .map(Number);

/** Of those the part of one lane: two that choose at once must not collide. */
function portsOfLane(index, count) {
  const size = Math.floor((lastPort - firstPort) / count);
  return `${firstPort + index * size}-${firstPort + (index + 1) * size - 1}`;
}

/** Whether the console's tests may be among them: a folder or a pattern may mean any. */
function wantsBrowser(args) {
  const named = args.filter((arg) => !arg.startsWith('-'));
  return named.some((arg) => !arg.endsWith('.test.ts') || /\bconsole/.test(arg));
}

/**
 * Runs some of the tests on a set of backends.
 * @param {{name: string, set: Awaited<ReturnType<typeof backends>>, backends: string[], args: string[], ports: string, isFiller?: boolean}} part
 * @returns the files with their times
 */
async function runPart({ name, set, backends: names, args, ports, isFiller = false }) {
  const mark = `test-${randomBytes(8).toString('hex')}`;
  await readyBackends(set, names);
  const variables = {
    ...set.urls(names),
    ...(await testPrograms(set.profile, say, wantsBrowser(args))),
    PORTICO_TEST_PROFILE: set.profile.name,
    PORTICO_TEST_RUN: mark,
    PORTICO_TEST_PORTS: ports,
  };
  const { words, files, ...counts } = await runJest(args, { folder: set.profile.run, variables, isFiller });
  score.passed += counts.passed;
  score.failed += counts.failed;
  say(name, words);
  await step(`leaks of ${name}`, () => checkLeaks(set, names, `PORTICO_TEST_RUN=${mark}`));
  return files;
}

/** Some of the tests, on one set of backends: that of an `npm run backends` if there is one. */
async function runSome(jestArgs) {
  const isKept = areKept();
  if (!isKept) await makeRoom(['test']);
  const set = await backends('test');
  const part = { name: 'jest', set, backends: backendsFor(jestArgs), args: jestArgs };
  try {
    return await runPart({ ...part, ports: portsOfLane(0, 1) });
  } finally {
    if (!isKept) await dropBackends(set);
  }
}

/** @param {import('./lanes.mjs').Lane} lane */
async function runLane({ name, files, backends: names, isFiller }, ports) {
  const begin = Date.now();
  const set = await backends(profileOf(name));
  try {
    return await runPart({
      name,
      set,
      backends: names,
      args: ['--runTestsByPath', ...files],
      ports,
      isFiller,
    });
  } finally {
    await dropBackends(set);
    say(name, `took ${((Date.now() - begin) / 1000).toFixed(0)} s`);
  }
}

/** Time of all cores since the start of the system, and how much of it they had nothing to do. */
function coreTimes() {
  const times = cpus().map((core) => core.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { all, idle: times.reduce((sum, { idle }) => sum + idle, 0) };
}

/** @returns a function that tells which share of the time since its last call the cores had to spare */
function spareTime() {
  let before = coreTimes();
  return () => {
    const now = coreTimes();
    const share = (now.idle - before.idle) / Math.max(1, now.all - before.all);
    before = now;
    return share;
  };
}

/** All of the tests: a few lanes at once, each on backends of its own. */
async function runAll() {
  const lanes = testLanes();
  await makeRoom(lanes.map(({ name }) => profileOf(name)));
  const all = lanes.map((lane, index) => ({ lane, ports: portsOfLane(index, lanes.length) }));
  const rest = all.filter(({ lane }) => !lane.isFiller);
  const files = [];
  const running = new Set();
  const failures = [];
  const start = ({ lane, ports }) =>
    runLane(lane, ports).then(
      (done) => files.push(...done),
      (error) => failures.push(error),
    );
  const startNext = () => {
    const next = rest.shift();
    if (next === undefined) return;
    const work = start(next).finally(() => running.delete(work));
    running.add(work);
  };
  const sources = checkSources();
  const fillers = all.filter(({ lane }) => lane.isFiller).map(start);
  const spare = spareTime();
  let isSpare = false;
  while (rest.length > 0 && failures.length === 0) {
    if (running.size < fewestLanes || (running.size < mostLanes && isSpare)) startNext();
    if (running.size < fewestLanes) continue;
    const look = sleep(lookMs, 'look', { ref: false });
    // a lane that ends leaves its cores to the next
    if ((await Promise.race([look, ...running])) === 'look') isSpare = spare() > spareShare;
  }
  await Promise.all([...running, ...fillers, sources.catch((error) => failures.push(error))]);
  if (failures.length > 0) throw failures[0];
  return files;
}

async function run(jestArgs) {
  await withLock(checkoutLock, async () => {
    await ensurePackages((line) => say('packages', line));
    if (!(await builds())) return;
    say('build', 'up to date');
  });
  const files = jestArgs.length === 0 ? await runAll() : await runSome(jestArgs);
  if (files.length > slowest) showSlowest(files);
  say('backends', 'stopped');
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
