import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../compose/state/profile.mjs';
import { becomes200, containers, hangsMs } from './containers.mjs';
import { namedImages } from './images.mjs';
import { demand } from './score.mjs';

const image = 'portico-test/gateway';
const names = { network: 'portico-test-image', redis: 'portico-test-redis', gateway: 'portico-test-gateway' };
const token = 'portico-test-kv-0123456789';
const buildLimitMs = 600_000;
/** Node alone is 125 MB. */
const largestMegabytes = 200;

/** The gateway's image, alone and with one backend. @param {import('./run.mjs').Bench} bench */
export async function checkImage({ env, score: { check, say } }) {
  const engine = containers(env);
  const url = `http://127.0.0.1:${env.PORTICO_HTTP_PORT}`;
  const node = (script) => engine.docker(['run', '--rm', image, 'node', '-p', script]);
  const remove = async () => {
    await engine.docker(['rm', '--force', '--volumes', names.gateway, names.redis]).catch(() => undefined);
    await engine.docker(['network', 'rm', names.network]).catch(() => undefined);
  };

  await check('docker build', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const args = [
      'build',
      '--quiet',
      '--tag',
      image,
      '--build-arg',
      `VERSION=${version}`,
      '--file',
      'compose/Dockerfile',
    ];
    await engine.docker(
      [...args, root].map((arg) => arg.replace(/^compose/, join(root, 'compose'))),
      buildLimitMs,
    );
  });
  await check('labels, user, health check and size', async () => {
    const { Config, Size } = await engine.inspect(image);
    demand(Config.User === '1000:1000', `user ${Config.User}`);
    demand(Config.Healthcheck?.Test?.includes('/livez'), Config.Healthcheck);
    demand(Config.Labels['org.opencontainers.image.licenses'] === 'Apache-2.0', Config.Labels);
    say(`the image has ${(Size / 1e6).toFixed(0)} MB`);
    demand(Size < largestMegabytes * 1e6, `${Size} bytes`);
  });
  await check('no shell and no package manager', async () => {
    for (const program of ['sh', 'bash', 'npm', 'apt-get']) {
      const error = await engine.docker(['run', '--rm', image, program]).catch((reason) => reason);
      demand(/not found/.test(error.message), `${program}: ${error.message ?? 'runs'}`);
    }
  });
  await check('the SBOM names what is in it, and the licences are there', async () => {
    const sbom = JSON.parse(await node(`require('fs').readFileSync('/app/sbom.cdx.json', 'utf8')`));
    const components = sbom.components.map(({ name }) => name);
    for (const name of ['node', 'libc6', 'express', 'ioredis'])
      demand(components.includes(name), `${name} is missing`);
    for (const name of ['jest', 'openpgp']) demand(!components.includes(name), `${name} is in it`);
    demand((await node(`require('fs').existsSync('node_modules/openpgp')`)).trim() === 'false', 'openpgp');
    const folders = await node(
      `['libc6', 'libstdc++6', 'libgcc-s1', 'node'].every((n) => require('fs').statSync('/usr/share/doc/' + n + '/copyright').size > 0)`,
    );
    demand(folders.trim() === 'true', folders);
  });
  await remove();
  await check('with Redis alone: kv works, the others are off and say so, nothing is written', async () => {
    await engine.docker(['network', 'create', names.network]);
    const redis = namedImages().find((name) => name?.startsWith('redis:'));
    const network = ['--network', names.network];
    await engine.docker([
      'run',
      '-d',
      '--name',
      names.redis,
      ...network,
      redis,
      'redis-server',
      '--requirepass',
      'a-password',
    ]);
    await engine.docker(
      ['run', '-d', '--name', names.gateway, ...network, '-p', `127.0.0.1:${env.PORTICO_HTTP_PORT}:8070`]
        .concat(['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'])
        .concat([
          '-e',
          `PORTICO_REDIS_URL=redis://:a-password@${names.redis}:6379`,
          '-e',
          `PORTICO_KV_TOKEN=${token}`,
          image,
        ]),
    );
    await becomes200(`${url}/readyz`, hangsMs);
    const headers = { authorization: `Bearer ${token}` };
    const pong = await (await fetch(`${url}/kv/ping`, { headers })).text();
    demand(pong.includes('PONG'), pong);
    for (const path of ['vector/info', 'broker/topics', 'queue/v2/queues']) {
      const answer = await fetch(`${url}/${path}`);
      demand(answer.status >= 400, `${path}: ${answer.status}`);
    }
  });
  await check('it becomes healthy, and stops in time with exit code 0', async () => {
    for (const end = Date.now() + hangsMs; Date.now() < end; ) {
      if ((await engine.inspect(names.gateway)).State.Health.Status === 'healthy') break;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    const { Health } = (await engine.inspect(names.gateway)).State;
    demand(Health.Status === 'healthy', Health);
    const begin = Date.now();
    await engine.docker(['stop', names.gateway]);
    // of 10 s that Docker gives it; 0.3 to 2 s when the machine is idle
    demand(Date.now() - begin < 9_000, `${Date.now() - begin} ms`);
    const { ExitCode } = (await engine.inspect(names.gateway)).State;
    demand(ExitCode === 0, `exit code ${ExitCode}`);
  });
  await remove();
}
