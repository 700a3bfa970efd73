import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Interrupted } from '../processes/interruption.mjs';
import { root } from '../state/profile.mjs';
import { writePrivateFile } from '../state/secrets.mjs';
import { WrongPassword } from './backend.mjs';
import { exchange } from './exchange.mjs';
import { demandFolderName } from './folder-names.mjs';
import { architecture } from './programs/archive.mjs';
import { readLock } from './programs/lock-file.mjs';
import { programOf } from './programs/programs.mjs';
import { fetchJsonModule, jsonModuleOf } from './programs/redis-json.mjs';
import { giveData, giveTo } from './unprivileged.mjs';
import { compareVersions } from './versions.mjs';

/** The module for this machine, unless the user wants none. */
function lockedJson() {
  if (process.env.PORTICO_REDIS_JSON === 'off') return undefined;
  return readLock().redisJson[architecture() ?? ''];
}

/** How often Redis writes to disk what it has confirmed; its own words. */
const FSYNC = ['always', 'everysec', 'no'];

/** @throws {Error} for a word that Redis does not have */
function fsyncOf() {
  const wanted = process.env.PORTICO_REDIS_FSYNC || 'everysec';
  if (!FSYNC.includes(wanted)) throw new Error(`PORTICO_REDIS_FSYNC: expected ${FSYNC.join(', ')}`);
  return wanted;
}

/** The module's file, where it is there and wanted. */
function presentModule(p) {
  const locked = lockedJson();
  if (locked === undefined) return undefined;
  const file = jsonModuleOf(p, locked);
  return existsSync(file) ? file : undefined;
}

/** A Redis without JSON commands is better than none. */
const goWithout = (installer) => (error) => {
  if (error instanceof Interrupted) throw error;
  installer.say(`Redis' JSON module cannot be had: ${error.message}`);
};

/** As Redis reads it back from its configuration: bytes that are not plain text are escaped. */
const redisQuoted = (text) => `"${text.replace(/["\\]/g, '\\$&')}"`;

/** Redis takes a file's name with one of these for a pattern and, where none fits, starts on its defaults. */
const asPattern = (file) => (/[*?[]/.test(file) ? file.replace(/[*?[\]\\]/g, '\\$&') : file);

const dataOf = (p) => join(p.data, 'redis');
/** Which Redis has written the data. It lies beside them and not among them: that folder is Redis' own. */
const writerOf = (p) => `${dataOf(p)}.version`;
const majorAndMinor = (version) => version.split('.').slice(0, 2).join('.');

function lastWriter(p) {
  return existsSync(dataOf(p)) && existsSync(writerOf(p))
    ? readFileSync(writerOf(p), 'utf8').trim()
    : undefined;
}

/**
 * An older Redis cannot read what a newer one has written. It is refused rather than given a folder of its own: a
 * store that comes up empty looks as if it had lost everything.
 * @throws {Error} that names the folder and the ways out
 */
function claimData(p, version) {
  const own = majorAndMinor(version);
  const before = lastWriter(p) ?? own;
  if (compareVersions(own, before) < 0)
    throw new Error(
      `the data in ${dataOf(p)} are Redis ${before}'s, and only Redis ${own} is to be had now, which cannot read them. Start once with a network, so that the newer one is fetched again, or move that folder away`,
    );
  mkdirSync(dataOf(p), { recursive: true });
  const noted = existsSync(writerOf(p)) ? readFileSync(writerOf(p), 'utf8').trim() : undefined;
  // in one step: a full disk must not empty it
  if (noted !== own) writePrivateFile(writerOf(p), `${own}\n`);
}

/** @type {import('./backend.mjs').Backend} */
export const redis = {
  name: 'redis',
  ports: ['redis'],
  graceMs: 10_000,
  stopSignal: 'SIGTERM',

  async install(installer) {
    demandFolderName('redis', installer.p.dir);
    const locked = lockedJson();
    await Promise.all([
      installer.program('redis'),
      locked && fetchJsonModule(installer.p, locked, installer.say).catch(goWithout(installer)),
    ]);
  },

  async processes({ p, secrets, runner }) {
    const { tree, version } = programOf(p, 'redis');
    claimData(p, version);
    const dir = dataOf(p);
    const conf = join(p.run, 'redis.conf');
    const module = presentModule(p);
    const own = [
      'bind 127.0.0.1',
      'protected-mode yes',
      `port ${p.ports.redis}`,
      'daemonize no',
      // the title would overwrite the environment in the process table, by which the launcher knows its own
      'set-proc-title no',
      `dir ${redisQuoted(dir)}`,
      `appendfsync ${fsyncOf()}`,
      `requirepass ${secrets.PORTICO_REDIS_PASSWORD}`,
      ...(module ? [`loadmodule ${redisQuoted(module)}`] : []),
    ];
    writePrivateFile(conf, `${readFileSync(join(root, 'config/redis.conf'), 'utf8')}${own.join('\n')}\n`);
    giveTo(runner, conf);
    giveData(runner, dir);
    return [{ name: 'redis', file: join(tree, 'usr/bin/redis-server'), args: [asPattern(conf)], cwd: dir }];
  },

  async ready({ p, secrets }) {
    await exchange(p.ports.redis, async (send, read) => {
      send(`AUTH ${secrets.PORTICO_REDIS_PASSWORD}\r\nPING\r\n`);
      const answer = String(await read(12));
      if (answer.startsWith('-WRONGPASS')) throw new WrongPassword();
      if (answer !== '+OK\r\n+PONG\r\n') throw new Error(`Redis answers ${answer.split('\r')[0]}`);
    });
  },

  notes({ p }) {
    const { version, instead } = programOf(p, 'redis');
    return [
      ...(instead ? [`Redis ${version} in place of ${instead}, which Debian no longer has`] : []),
      presentModule(p)
        ? `JSON commands by Redis' own module, licence ${lockedJson()?.license}; PORTICO_REDIS_JSON=off leaves it out`
        : 'no JSON commands: Redis has no JSON module here',
    ];
  },

  explain({ p }, words) {
    if (presentModule(p) || !/ReJSON|JSON\.[A-Z]/i.test(words)) return undefined;
    return `the data in ${dataOf(p)} hold JSON values, which Redis reads with its JSON module only: start with a network, so that it is fetched again, and without PORTICO_REDIS_JSON=off`;
  },

  urls: ({ p, secrets }) => ({
    PORTICO_REDIS_URL: `redis://default:${secrets.PORTICO_REDIS_PASSWORD}@127.0.0.1:${p.ports.redis}`,
  }),
};
