import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../profile.mjs';
import { writePrivateFile } from '../secrets.mjs';
import { exchange } from './exchange.mjs';

/** @type {import('./backend.mjs').Backend} */
export const redis = {
  name: 'redis',
  programs: { 'redis-server': 'redis-server' },
  ports: ['redis'],
  graceMs: 10_000,
  stopSignal: 'SIGTERM',

  async install() {
    // Debian's program is used as it is.
  },

  async processes({ p, secrets }) {
    const dir = join(p.data, 'redis');
    mkdirSync(dir, { recursive: true });
    const conf = join(p.run, 'redis.conf');
    const own = [
      'bind 127.0.0.1',
      'protected-mode yes',
      `port ${p.ports.redis}`,
      'daemonize no',
      `dir "${dir}"`,
      `requirepass ${secrets.PORTICO_REDIS_PASSWORD}`,
    ];
    writePrivateFile(conf, `${readFileSync(join(root, 'config/redis.conf'), 'utf8')}${own.join('\n')}\n`);
    return [{ name: 'redis', file: 'redis-server', args: [conf], cwd: dir }];
  },

  async ready({ p, secrets }) {
    await exchange(p.ports.redis, async (send, read) => {
      send(`AUTH ${secrets.PORTICO_REDIS_PASSWORD}\r\nPING\r\n`);
      const answer = String(await read(12));
      if (answer !== '+OK\r\n+PONG\r\n') throw new Error(`Redis answers ${answer.split('\r')[0]}`);
    });
  },

  urls: ({ p, secrets }) => ({
    PORTICO_REDIS_URL: `redis://default:${secrets.PORTICO_REDIS_PASSWORD}@127.0.0.1:${p.ports.redis}`,
  }),
};
