import { linkSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfInterrupted } from './interruption.mjs';
import { isAlive, readProcess } from './process-table.mjs';

/** A cold start on a slow network takes minutes; whoever waits longer than this should look for himself. */
const limitMs = 12 * 60_000;
const pollMs = 100;

function holderOf(file) {
  try {
    const [pid, start = ''] = readFileSync(file, 'utf8').trim().split(' ');
    return { pid: Number(pid), start };
  } catch (error) {
    // its holder has just left; whoever may not read it would wait for nothing
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** @returns {number | undefined} the living process that holds a lock */
export function lockHolder(file) {
  const holder = holderOf(file);
  return holder !== undefined && isAlive(holder) ? holder.pid : undefined;
}

/** Moves a dead holder's lock away. Another waiter may have done so and hold it now: then it is put back. */
function clearStale(file, dead) {
  const moved = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, moved);
  } catch {
    return;
  }
  if (holderOf(moved)?.start !== dead.start) linkSync(moved, file);
  unlinkSync(moved);
}

/** Takes the lock if nobody living holds it. The file appears with its content, by a link, never empty. */
function tryTake(file) {
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, `${process.pid} ${readProcess(process.pid)?.start}\n`);
  try {
    linkSync(mine, file);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    const holder = holderOf(file);
    if (holder && !isAlive(holder)) clearStale(file, holder);
    return false;
  } finally {
    unlinkSync(mine);
  }
}

/**
 * Runs `work` while no other launcher does. The lock of a launcher that was killed is taken over.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} work
 * @param {(holder: number) => void} [onWait] called once, with the process that is waited for
 * @param {boolean} [mayInterrupt] default true; whoever ends what he started waits although the user wants out
 * @returns {Promise<T>}
 * @throws {Error} when the holder does not finish within twelve minutes
 */
export async function withLock(file, work, onWait, mayInterrupt = true) {
  const deadline = Date.now() + limitMs;
  let told = false;
  while (!tryTake(file)) {
    const holder = holderOf(file);
    if (holder && !told) onWait?.(holder.pid);
    told ||= holder !== undefined;
    if (Date.now() > deadline) throw new Error(`process ${holder?.pid} holds ${file} for too long`);
    if (mayInterrupt) throwIfInterrupted();
    await sleep(pollMs);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}
