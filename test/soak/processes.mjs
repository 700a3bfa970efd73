import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What /proc says of processes; one that has just ended has nothing. */
const lines = (file) => {
  try {
    return readFileSync(file, 'latin1').trim().split('\n');
  } catch {
    return [];
  }
};

/** @param {number} pid @returns {number[]} */
export const childrenOf = (pid) =>
  (lines(`/proc/${pid}/task/${pid}/children`)[0] ?? '').split(' ').filter(Boolean).map(Number);

export const isAlive = (pid) => existsSync(`/proc/${pid}/stat`);

/** @param {number} pid @returns {number} resident memory in MiB */
export function rssOf(pid) {
  const line = lines(`/proc/${pid}/status`).find((one) => one.startsWith('VmRSS:')) ?? '';
  return Number(/(\d+) kB/.exec(line)?.[1] ?? 0) / 1_024;
}

/** @param {number} pid @returns {string[]} what its open files are, such as `socket:[1234]` */
export function filesOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

/** The TCP connections of this machine: by inode, the ports of both ends. @returns {Map<string, {local: number, remote: number}>} */
export function connections() {
  const found = new Map();
  for (const line of ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(lines)) {
    const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/);
    const port = (address) => Number.parseInt(address?.split(':')[1] ?? '', 16);
    if (inode !== undefined && inode !== '0')
      found.set(`socket:[${inode}]`, { local: port(local), remote: port(remote) });
  }
  return found;
}
