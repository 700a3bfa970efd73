import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Interrupted } from '../interruption.mjs';
import { root } from '../profile.mjs';
import { writePrivateFile } from '../secrets.mjs';
import { exchange } from './exchange.mjs';
import { fetchedRedis, fetchRedis, newestRedis } from './redis-program.mjs';
import { compareVersions } from './versions.mjs';

/** HEXPIRE and its kin came with it; HGETEX, HSETEX and HGETDEL with 8.0. */
const hashFieldExpiry = '7.4';

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
  writeFileSync(writerOf(p), `${own}\n`);
}

/** @type {import('./backend.mjs').Backend} */
export const redis = {
  name: 'redis',
  programs: {},
  // what there is when no newer one can be fetched
  installPrograms: { 'redis-server': 'redis-server' },
  ports: ['redis'],
  graceMs: 10_000,
  stopSignal: 'SIGTERM',

  installed: (p) => fetchedRedis(p) !== undefined,

  async install(p, progress) {
    try {
      await fetchRedis(p, progress);
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      progress(`the system's own is used: ${error.message}`);
    }
  },

  async processes({ p, secrets }) {
    const program = await newestRedis(p);
    if (!program) throw new Error('there is no program redis-server that runs');
    claimData(p, program.version);
    const dir = dataOf(p);
    const conf = join(p.run, 'redis.conf');
    const own = [
      'bind 127.0.0.1',
      'protected-mode yes',
      `port ${p.ports.redis}`,
      'daemonize no',
      // the title would overwrite the environment in the process table, by which the launcher knows its own
      'set-proc-title no',
      `dir "${dir}"`,
      `requirepass ${secrets.PORTICO_REDIS_PASSWORD}`,
    ];
    writePrivateFile(conf, `${readFileSync(join(root, 'config/redis.conf'), 'utf8')}${own.join('\n')}\n`);
    return [{ name: 'redis', file: program.file, args: [conf], cwd: dir }];
  },

  async ready({ p, secrets }) {
    await exchange(p.ports.redis, async (send, read) => {
      send(`AUTH ${secrets.PORTICO_REDIS_PASSWORD}\r\nPING\r\n`);
      const answer = String(await read(12));
      if (answer !== '+OK\r\n+PONG\r\n') throw new Error(`Redis answers ${answer.split('\r')[0]}`);
    });
  },

  note({ p }) {
    const version = lastWriter(p);
    if (!version || compareVersions(version, hashFieldExpiry) >= 0) return undefined;
    return `Redis ${version}: hash-field expiry (HEXPIRE and the like) needs ${hashFieldExpiry}`;
  },

  urls: ({ p, secrets }) => ({
    PORTICO_REDIS_URL: `redis://default:${secrets.PORTICO_REDIS_PASSWORD}@127.0.0.1:${p.ports.redis}`,
  }),
};
