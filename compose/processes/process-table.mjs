import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename } from 'node:path';

/** What is asked of /proc: who runs, who started whom, who listens. Linux only, like the native path. */

/**
 * One process, told apart from a later one with the same number by its start time.
 * @typedef {{pid: number, start: string}} ProcessId start: clock ticks since boot
 * @typedef {ProcessId & {ppid: number, state: string}} ProcessRow
 */

/** @returns {ProcessRow | undefined} undefined when the process is gone or a zombie */
export function readProcess(pid) {
  let text;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The name in parentheses may hold spaces and parentheses itself, so the fields are counted after the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, ppid] = fields;
  if (state === 'Z' || state === 'X') return undefined;
  return { pid, start: fields[19], ppid: Number(ppid), state };
}

/** @param {ProcessId} id */
export function isAlive(id) {
  return readProcess(id.pid)?.start === id.start;
}

/** @returns {ProcessRow[]} */
function allProcesses() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((row) => row !== undefined);
}

/**
 * A process and all that descend from it. Process groups do not tell: Postgres' and Erlang's children open sessions of their own.
 * @param {ProcessId} id
 * @returns {ProcessRow[]} the process itself first; empty when it is gone
 */
export function tree(id) {
  const rows = allProcesses();
  const top = rows.find((row) => row.pid === id.pid && row.start === id.start);
  const found = top ? [top] : [];
  for (const parent of found)
    found.push(...rows.filter((row) => row.ppid === parent.pid && row.pid !== parent.pid));
  return found;
}

/** The environment that a process was started with, as `NAME=value`; empty where this user may not see it. */
export function environmentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/**
 * Processes that carry a variable in the environment they were started with: orphans whose parent was killed.
 * @param {string} variable `NAME=value`
 * @returns {ProcessRow[]}
 */
export function taggedWith(variable) {
  return allProcesses().filter((row) => row.pid !== process.pid && environmentOf(row.pid).includes(variable));
}

/** @returns {boolean} whether a process has this folder as its working one; true where this user may not see it */
export function worksIn(pid, folder) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(folder);
  } catch {
    return true;
  }
}

/** @returns {ProcessRow[]} all that have this folder as their working one, as far as this user may see them */
export function workingIn(folder) {
  const place = realpathSync(folder);
  return allProcesses().filter(({ pid }) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === place;
    } catch {
      return false;
    }
  });
}

/** @returns {boolean} whether no process that this user may look into runs from a folder, or was given it as an argument */
export function nobodyUses(folder) {
  return !allProcesses().some(({ pid }) => {
    try {
      return (
        readlinkSync(`/proc/${pid}/exe`).startsWith(`${folder}/`) ||
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${folder}/`)
      );
    } catch {
      return false;
    }
  });
}

/** The socket inodes that listen on a TCP port, IPv4 and IPv6. */
function listeningInodes(port) {
  const inodes = new Set();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    let text = '';
    try {
      text = readFileSync(table, 'utf8');
    } catch {
      continue;
    }
    for (const line of text.split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/);
      const local = fields[1]?.split(':')[1];
      if (fields[3] === '0A' && local && Number.parseInt(local, 16) === port) inodes.add(fields[9]);
    }
  }
  return inodes;
}

/**
 * Which process listens on a port, as far as this user may see.
 * @returns {number | undefined}
 */
export function listenerIdOf(port) {
  const inodes = listeningInodes(port);
  if (inodes.size === 0) return undefined;
  return allProcesses().find(({ pid }) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => {
        const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
        return target.startsWith('socket:[') && inodes.has(target.slice(8, -1));
      });
    } catch {
      // Another user's process, or one that has just ended: not ours to look into.
      return false;
    }
  })?.pid;
}

/** Node from 24 on calls itself by its thread. */
function nameOf(pid) {
  const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  return name === 'MainThread' ? basename(readlinkSync(`/proc/${pid}/exe`)) : name;
}

/**
 * Which program listens on a port.
 * @returns {string | undefined} such as `redis-server (process 4711)`
 */
export function listenerOf(port) {
  const pid = listenerIdOf(port);
  if (pid !== undefined) return `${nameOf(pid)} (process ${pid})`;
  return listeningInodes(port).size === 0 ? undefined : 'a program of another user';
}
