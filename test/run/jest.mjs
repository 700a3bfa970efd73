import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { Interrupted, interruption } from '../../compose/processes/interruption.mjs';
import { root, stateDir } from '../../compose/state/profile.mjs';

const FILLER_PRIORITY = constants.priority.PRIORITY_BELOW_NORMAL;

const compiled = join(stateDir, 'run/compiled');

/** No run of the tests takes this long (8 min on two cores, ten times that on a busy one); one that hangs must end all the same. */
const limitMs = 180 * 60_000;
/** jest has written its report and yet does not end: a test left something open. */
const exitLimitMs = 60_000;

/**
 * What came of a run of jest.
 * @typedef {object} Outcome
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string} words
 * @property {{name: string, startTime: number, endTime: number}[]} files
 */

/** Ends a jest that stays although its report is there; jest's exit code then says that the run has failed. */
function endWhenStuck(file, end) {
  let reportedAt;
  const timer = setInterval(() => {
    if (reportedAt === undefined && existsSync(file)) reportedAt = Date.now();
    if (reportedAt === undefined || Date.now() - reportedAt < exitLimitMs) return;
    clearInterval(timer);
    end();
  }, 500);
  return { cancel: () => clearInterval(timer) };
}

/**
 * Runs jest in a session of its own, so that a Ctrl-C comes to this process alone, which ends it with all its children.
 * @param {string[]} args
 * @param {{folder: string, variables: Record<string, string>, isFiller: boolean}} where the folder is for its report; a filler has the lower priority
 * @returns {Promise<Outcome>}
 * @throws {Interrupted}
 */
export async function runJest(args, { folder, variables, isFiller }) {
  const file = join(folder, 'jest.json');
  rmSync(file, { force: true });
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const child = spawn(process.execPath, [jest, '--runInBand', '--json', `--outputFile=${file}`, ...args], {
    cwd: root,
    // for the gateways that tests start, some two hundred
    env: { NODE_COMPILE_CACHE: compiled, ...process.env, ...variables },
    // With --json the report goes to standard output as well; the file has it.
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  });
  if (isFiller && child.pid !== undefined) setPriority(child.pid, FILLER_PRIORITY);
  const end = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(end, limitMs);
  const stuck = endWhenStuck(file, end);
  interruption.addEventListener('abort', end, { once: true });
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  stuck.cancel();
  interruption.removeEventListener('abort', end);
  if (interruption.aborted) throw new Interrupted();
  return outcomeOf(file, code);
}

/** @returns {Outcome} */
function outcomeOf(file, code) {
  if (!existsSync(file))
    return { passed: 0, failed: 1, skipped: 0, words: `FAILED: no report, exit code ${code}`, files: [] };
  const report = JSON.parse(readFileSync(file, 'utf8'));
  // A file that could not even be loaded has no tests to count.
  const counted = report.numFailedTests + report.numRuntimeErrorTestSuites;
  // A jest that had to be ended has no exit code; one with passed tests alone may fail all the same, by a setting.
  const failed = code === null || (counted === 0 && code !== 0) ? counted + 1 : counted;
  const passed = report.numPassedTests;
  const skipped = report.numPendingTests + report.numTodoTests;
  const ended =
    code === null
      ? 'ended by force: a test left a connection, a timer or a server open'
      : `exit code ${code}`;
  const words = `${passed} passed, ${failed} failed, ${skipped} skipped, ${ended}`;
  return { passed, failed, skipped, words, files: report.testResults };
}
