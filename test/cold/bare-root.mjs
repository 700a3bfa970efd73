import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchIndex, publicMirror } from '../../compose/native/programs/archive.mjs';
import { download } from '../../compose/native/programs/download.mjs';
import { ensureDebootstrap } from '../debootstrap.mjs';

/** Where systems and Nodes are kept between runs; making one takes a minute or two. */
const cache = process.env.PORTICO_COLD_CACHE || '/var/cache/portico-cold';
const checkout = process.cwd();

/** The systems by name: what debootstrap is asked for, which knows where each comes from. */
const systems = {
  debian12: { suite: 'bookworm' },
  debian13: { suite: 'trixie' },
  ubuntu24: { suite: 'noble', keys: 'ubuntu-keyring' },
};

/** The npm that a release of Node was shipped with. */
const npmOf = { 18: '9.9.4', 20: '10.9.7', 22: '10.9.7', 24: '11.6.2' };

const sh = (file, args, options = {}) =>
  execFileSync(file, args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', ...options });

/** debootstrap's own files, with a script for a release that is newer than it: Ubuntu's releases share one. */
function scriptsWith(suite) {
  const own = '/usr/share/debootstrap';
  if (existsSync(join(own, 'scripts', suite))) return own;
  const folder = join(cache, 'debootstrap');
  cpSync(own, folder, { recursive: true, verbatimSymlinks: true });
  rmSync(join(folder, 'scripts', suite), { force: true });
  symlinkSync('gutsy', join(folder, 'scripts', suite));
  return folder;
}

/** The keys of another distribution, of which Debian's newest release has a package. @returns {Promise<string>} a file */
async function keyringOf(name) {
  const folder = join(cache, name);
  const file = join(folder, 'usr/share/keyrings/ubuntu-archive-keyring.gpg');
  if (existsSync(file)) return file;
  const fields = (await fetchIndex(publicMirror, 'sid', 'amd64')).byName.get(name);
  const deb = join(cache, `${name}.deb`);
  const { Filename: path, Size: size, SHA256: sha256 } = fields;
  await download(
    { urls: [`${publicMirror}/${path}`], file: deb, size: Number(size), sha256 },
    () => undefined,
  );
  sh('dpkg-deb', ['-x', deb, folder]);
  return file;
}

/** A pristine system as debootstrap makes it: no Node, no package that Portico might want. */
async function baseOf(name, say) {
  const { suite, keys } = systems[name];
  const folder = join(cache, name);
  if (existsSync(folder)) return folder;
  say(`making the system ${name}`);
  mkdirSync(cache, { recursive: true });
  ensureDebootstrap();
  const half = `${folder}.new`;
  rmSync(half, { recursive: true, force: true });
  const options = ['--variant=minbase', ...(keys ? [`--keyring=${await keyringOf(keys)}`] : [])];
  sh('debootstrap', [...options, suite, half], {
    env: { ...process.env, DEBOOTSTRAP_DIR: scriptsWith(suite) },
    timeout: 900_000,
  });
  renameSync(half, folder);
  return folder;
}

/** A layer with one release of Node and its npm, from the registry's packages `node-linux-*` and `npm`. */
function nodeLayer(major) {
  const layer = join(cache, `node-${major}`);
  if (existsSync(layer)) return layer;
  mkdirSync(cache, { recursive: true });
  const half = mkdtempSync(join(cache, 'node-new-'));
  const pack = (spec) => sh('npm', ['pack', '--silent', spec], { cwd: half }).trim().split('\n').at(-1);
  const local = join(half, 'root/usr/local');
  mkdirSync(join(local, 'bin'), { recursive: true });
  mkdirSync(join(local, 'lib/node_modules'), { recursive: true });
  sh('tar', ['-xzf', pack(`node-linux-${process.arch}@${major}`), 'package/bin/node'], { cwd: half });
  renameSync(join(half, 'package/bin/node'), join(local, 'bin/node'));
  rmSync(join(half, 'package'), { recursive: true });
  sh('tar', ['-xzf', pack(`npm@${npmOf[major]}`)], { cwd: half });
  renameSync(join(half, 'package'), join(local, 'lib/node_modules/npm'));
  sh('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm')]);
  sh('ln', ['-s', '../lib/node_modules/npm/bin/npx-cli.js', join(local, 'bin/npx')]);
  sh('chmod', ['-R', 'a+rX', join(half, 'root')]);
  sh('chmod', ['a+x', join(local, 'bin/node'), join(local, 'lib/node_modules/npm/bin/npm-cli.js')]);
  renameSync(join(half, 'root'), layer);
  rmSync(half, { recursive: true });
  return layer;
}

/** The files of this checkout as git sees them, with what is not committed yet. */
function copyCheckout(target) {
  mkdirSync(target, { recursive: true });
  const files = sh('git', ['ls-files', '-co', '--exclude-standard'], { cwd: checkout }).trim().split('\n');
  for (const file of files)
    if (existsSync(join(checkout, file))) cpSync(join(checkout, file), join(target, file));
}

/**
 * A system with nothing but Node, in namespaces of its own (mounts and processes), thrown away at the end. Its network
 * is this machine's, or none.
 */
export class BareRoot {
  constructor(folder, keeper, root) {
    this.folder = folder;
    this.keeper = keeper;
    this.root = root;
  }

  /**
   * @param {{system: string, node: number, project: string, network?: boolean, user?: string}} wish
   *   project: where the checkout lies; user: who owns it
   * @param {(line: string) => void} say
   */
  static async create({ system, node, project, network = true, user = 'tester' }, say) {
    const lower = `${nodeLayer(node)}:${await baseOf(system, say)}`;
    const folder = mkdtempSync(join(tmpdir(), 'portico-cold-'));
    for (const name of ['upper', 'work', 'root']) mkdirSync(join(folder, name));
    const root = join(folder, 'root');
    const setUp = `
      set -e
      mount -t overlay overlay -o lowerdir=${lower},upperdir=${folder}/upper,workdir=${folder}/work ${root}
      mount -t proc proc ${root}/proc
      mount --rbind /dev ${root}/dev
      cp /etc/resolv.conf ${root}/etc/resolv.conf
      echo '127.0.0.1 localhost' > ${root}/etc/hosts
      ${network ? '' : 'ip link set lo up'}
      touch ${folder}/ready
      while :; do sleep 5 & wait; done`;
    const args = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
    const keeper = spawn('unshare', [...args, ...(network ? [] : ['--net']), 'bash', '-c', setUp], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    for (let waited = 0; !existsSync(join(folder, 'ready')); waited += 50) {
      if (keeper.exitCode !== null || waited > 20_000) throw new Error('the namespaces could not be made');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const bare = new BareRoot(folder, keeper, root);
    bare.project = project;
    bare.user = user;
    bare.home = user === 'root' ? '/root' : `/home/${user}`;
    if (user !== 'root') await bare.run(`useradd -m -s /bin/sh ${user}`, { as: 'root' });
    if (process.env.NODE_EXTRA_CA_CERTS)
      cpSync(process.env.NODE_EXTRA_CA_CERTS, join(bare.#within(), 'usr/local/share/ca.crt'));
    const half = join(folder, 'checkout');
    copyCheckout(half);
    await bare.copyIn(half, project);
    rmSync(half, { recursive: true });
    return bare;
  }

  /** Copies a folder of this machine into the root, for the root's user. */
  async copyIn(from, to) {
    mkdirSync(join(this.#within(), to, '..'), { recursive: true });
    cpSync(from, join(this.#within(), to), { recursive: true });
    await this.run(`chown -R ${this.user}: ${quoted(to)}`, { as: 'root' });
  }

  /** The namespaces' first process, as this machine numbers it. */
  #inner() {
    return sh('pgrep', ['-P', String(this.keeper.pid)])
      .trim()
      .split('\n')[0];
  }

  /** The root as this machine sees it. */
  #within() {
    return join(`/proc/${this.#inner()}/root`, this.root);
  }

  /**
   * Runs a line of shell inside, in the project's folder.
   * @returns {Promise<{code: number | null, out: string, seconds: number}>} never rejects
   */
  run(line, { as = this.user, env = {}, timeoutMs = 300_000 } = {}) {
    const begin = Date.now();
    const variables = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: as === 'root' ? '/root' : `/home/${as}`,
      ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: '/usr/local/share/ca.crt' }),
      ...env,
    };
    const words = [
      ...['-t', this.#inner(), '-m', '-p', '-n', 'chroot', `--userspec=${as}:${as}`, this.root],
      ...['/usr/bin/env', '-i', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)],
      ...['/bin/sh', '-c', `cd ${quoted(this.project ?? '/')} 2>/dev/null; ${line}`],
    ];
    return new Promise((resolve) => {
      execFile('nsenter', words, { timeout: timeoutMs, maxBuffer: 1e8 }, (error, stdout, stderr) =>
        resolve({
          code: error === null ? 0 : typeof error.code === 'number' ? error.code : null,
          out: stderr + stdout,
          seconds: (Date.now() - begin) / 1000,
        }),
      );
    });
  }

  /** What runs inside beside the keeper, as lines of its command. */
  processes() {
    const inner = this.#inner();
    const space = sh('readlink', [`/proc/${inner}/ns/pid`]).trim();
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && name !== inner)
      .filter((name) => {
        try {
          return sh('readlink', [`/proc/${name}/ns/pid`]).trim() === space;
        } catch {
          return false;
        }
      })
      .map((name) => {
        try {
          return sh('tr', ['\\0', ' '], {
            input: sh('cat', [`/proc/${name}/cmdline`]),
            stdio: ['pipe', 'pipe', 'pipe'],
          }).trim();
        } catch {
          return '';
        }
      })
      .filter((line) => line !== '' && !line.startsWith('sleep '));
  }

  async destroy() {
    const ended = once(this.keeper, 'exit');
    this.keeper.kill('SIGKILL');
    await ended;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return rmSync(this.folder, { recursive: true, force: true });
      } catch (error) {
        if (attempt === 20) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }
}

export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
