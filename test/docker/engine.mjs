import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { publicMirror } from '../../compose/native/programs/archive.mjs';
import { root as checkout } from '../../compose/state/profile.mjs';
import { ensureDebootstrap } from '../debootstrap.mjs';

const run = promisify(execFile);

/** What is kept between runs: root file systems, images and the engines' own data. 6 GB an engine. */
export const cache = process.env.PORTICO_DOCKER_CACHE ?? '/var/cache/portico-docker';
const mirror = process.env.PORTICO_DEBIAN_MIRROR ?? publicMirror;
const pluginFolder = 'usr/libexec/docker/cli-plugins';
const jail = fileURLToPath(new URL('jail.sh', import.meta.url));

/**
 * An engine that can be had of Debian, with a client and a Compose of its time.
 * @typedef {object} Engine
 * @property {string} suite
 * @property {string[]} packages
 * @property {string} plugins the suite whose Compose and Buildx are used
 * @property {string} [folder] of the root file system; absent: the suite's name
 * @property {(work: string, data: string, host: string) => string[]} command what starts it, in its root file system
 */

/** The user of a rootless engine, in its root file system. */
const rootlessId = 1000;

function dockerd(work, data, host) {
  const args = ['--data-root', data, '--exec-root', join(work, 'exec'), '--host', host];
  return ['dockerd', ...args, '--pidfile', join(work, 'dockerd.pid')];
}

/** Everything that the user needs who starts it: a name with sub-users, folders of its own, a tun device. */
function rootlessDockerd(work, data, host) {
  const home = join(work, 'home');
  const script = `
    grep -q ^user: /etc/passwd || useradd --uid ${rootlessId} user
    mkdir -p ${home} ${work}/exec && chmod 711 ${work} && chown ${rootlessId} ${work} ${home} ${work}/exec ${data}
    mknod ${home}/tun c 10 200 && chmod 666 ${home}/tun && mount --bind ${home}/tun /dev/net/tun
    export HOME=${home} XDG_RUNTIME_DIR=${home}; cd ${home}
    exec setpriv --reuid ${rootlessId} --regid ${rootlessId} --clear-groups \\
      sh /usr/share/docker.io/contrib/dockerd-rootless.sh ${dockerd(work, data, host).slice(1).join(' ')}`;
  return ['sh', '-ec', script];
}

/** @type {Record<string, Engine>} */
export const engines = {
  old: {
    suite: 'bookworm',
    packages: ['docker.io', 'iptables', 'ca-certificates'],
    plugins: 'trixie',
    command: dockerd,
  },
  current: {
    suite: 'sid',
    packages: ['docker.io', 'docker-cli', 'docker-compose', 'docker-buildx', 'iptables', 'ca-certificates'],
    plugins: 'sid',
    command: dockerd,
  },
  rootless: {
    suite: 'trixie',
    folder: 'trixie-rootless',
    packages: [
      ...['docker.io', 'docker-cli', 'rootlesskit', 'slirp4netns', 'uidmap'],
      ...['iptables', 'iproute2', 'procps', 'kmod', 'ca-certificates'],
    ],
    plugins: 'trixie',
    command: rootlessDockerd,
  },
};

/** @param {string} name @returns {Engine} */
function engineOf(name) {
  const engine = engines[name];
  if (engine === undefined)
    throw new Error(`unknown engine '${name}': use ${Object.keys(engines).join(', ')} or here`);
  return engine;
}

/** A root file system of Debian with some packages more, made once. @returns {Promise<string>} its folder */
export async function rootFileSystem(suite, packages = [], name = suite) {
  const folder = join(cache, 'roots', name);
  if (existsSync(folder)) return folder;
  mkdirSync(join(cache, 'roots'), { recursive: true });
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  const include = packages.length > 0 ? [`--include=${packages.join(',')}`] : [];
  ensureDebootstrap();
  await run('debootstrap', ['--variant=minbase', ...include, suite, fresh, mirror], {
    timeout: 900_000,
    maxBuffer: 1 << 26,
  });
  renameSync(fresh, folder);
  return folder;
}

/** Compose and Buildx, which bookworm does not have, of trixie. @returns {Promise<string>} a folder with usr/libexec */
async function pluginsOf(suite) {
  const root = await rootFileSystem(suite);
  if (existsSync(join(root, pluginFolder))) return root;
  const folder = join(cache, 'plugins', suite);
  if (existsSync(folder)) return folder;
  const script = 'cd /tmp && apt-get -qq update && apt-get -qq download docker-compose docker-buildx';
  await run('chroot', [root, 'sh', '-c', script], { timeout: 300_000 });
  mkdirSync(`${folder}.new`, { recursive: true });
  for (const name of readdirSync(join(root, 'tmp')).filter((file) => file.endsWith('.deb'))) {
    await run('dpkg-deb', ['-x', join(root, 'tmp', name), `${folder}.new`]);
    rmSync(join(root, 'tmp', name));
  }
  renameSync(`${folder}.new`, folder);
  return folder;
}

/** Writes a program that starts another root's program by that root's own loader and libraries. */
function wrap(file, root, program) {
  const folders = readdirSync(join(root, 'usr/lib')).filter((name) => name.endsWith('-linux-gnu'));
  const libraries = folders.map((name) => join(root, 'usr/lib', name));
  const loaders = libraries.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /^ld-linux.*\.so\.\d$/.test(name))
      .map((name) => join(folder, name)),
  );
  const loader = loaders[0] ?? '/none';
  writeFileSync(
    file,
    `#!/bin/sh\nexec '${loader}' --library-path '${libraries.join(':')}' --argv0 '${file}' '${program}' "$@"\n`,
  );
  chmodSync(file, 0o755);
}

/** A folder for PATH with `docker`, and a DOCKER_CONFIG with its plugins. */
async function client(name) {
  const { suite, packages, plugins: from, folder: own } = engineOf(name);
  const folder = join(cache, 'clients', name);
  const root = await rootFileSystem(suite, packages, own);
  const programs = await pluginsOf(from);
  const libraries = await rootFileSystem(from);
  mkdirSync(join(folder, 'bin'), { recursive: true });
  mkdirSync(join(folder, 'config/cli-plugins'), { recursive: true });
  wrap(join(folder, 'bin/docker'), root, join(root, 'usr/bin/docker'));
  for (const plugin of ['docker-compose', 'docker-buildx'])
    wrap(join(folder, 'config/cli-plugins', plugin), libraries, join(programs, pluginFolder, plugin));
  return folder;
}

/**
 * Starts an engine of its own, with data that the next run finds again.
 * @param {string} name `old` or `current`
 * @param {string} work a folder of this run
 * @returns {Promise<{env: Record<string, string>, stop: () => Promise<void>}>} env: PATH and what the client reads
 */
export async function startEngine(name, work) {
  const { suite, packages, folder: own, command } = engineOf(name);
  const root = await rootFileSystem(suite, packages, own);
  const folder = await client(name);
  const data = join(cache, 'data', name);
  mkdirSync(data, { recursive: true });
  const host = `unix://${join(work, 'docker.sock')}`;
  const log = openSync(join(cache, `dockerd-${name}.log`), 'w');
  const child = spawn(
    '/bin/sh',
    [jail, root, [cache, work, checkout].join(' '), ...command(work, data, host)],
    {
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', TMPDIR: '/tmp' },
      stdio: ['ignore', log, log],
      detached: true,
    },
  );
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    DOCKER_HOST: host,
    DOCKER_CONFIG: join(folder, 'config'),
    DOCKER_BUILDKIT: '1',
  };
  const stop = async () => {
    if (child.exitCode !== null || child.pid === undefined) return;
    process.kill(child.pid, 'SIGTERM');
    await Promise.race([new Promise((resolve) => child.once('exit', resolve)), sleep(30_000)]);
  };
  for (let turn = 0; turn < 120; turn += 1) {
    if (child.exitCode !== null) break;
    const answer = await run('docker', ['version'], { env: { ...process.env, ...env } }).catch(
      () => undefined,
    );
    if (answer !== undefined) return { env, stop };
    await sleep(500);
  }
  await stop();
  throw new Error(`the engine did not start: see ${join(cache, `dockerd-${name}.log`)}`);
}
