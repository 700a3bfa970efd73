import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Debian's maker of root file systems; needs root and Debian or kin. @throws {Error} with apt's words */
export function ensureDebootstrap() {
  if (existsSync('/usr/sbin/debootstrap')) return;
  const apt = (...args) => execFileSync('apt-get', ['-qq', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  apt('update');
  apt('install', '-y', '--no-install-recommends', 'debootstrap');
}
