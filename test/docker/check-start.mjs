import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { root } from '../../compose/state/profile.mjs';
import { becomes200, containers, hangsMs } from './containers.mjs';
import { namedImages } from './images.mjs';
import { readmeLines } from './readme.mjs';
import { demand } from './score.mjs';

/** The words of a command that has to fail. @throws {Error} when it does not */
async function failing(command, options) {
  const error = await runProgram('npm', command, options).then(
    () => undefined,
    (reason) => reason,
  );
  demand(error?.exitCode > 0, `exit code ${error?.exitCode ?? 0}`);
  return error.output;
}

/** `npm start` with its backends in containers. @param {import('./run.mjs').Bench} bench */
export async function checkStart({ env, score: { check } }) {
  const state = env.PORTICO_STATE_DIR;
  const project = `portico-dev-${createHash('sha256').update(state).digest('hex').slice(0, 8)}`;
  const connection = join(state, 'connection.env');
  const ready = `http://127.0.0.1:${env.PORTICO_HTTP_PORT}/readyz`;
  const engine = containers(env);
  const npm = (args, more = {}) =>
    runProgram('npm', args, { env: { ...env, ...more }, cwd: root, timeoutMs: hangsMs });
  const start = (more) => npm(['start', '--', '--detach'], more);
  const stop = () => npm(['stop']);
  const failingStart = (more) =>
    failing(['start', '--', '--detach'], { env: { ...env, ...more }, cwd: root, timeoutMs: hangsMs });
  const anonymous = await engine.anonymousVolumes();

  await check('no engine: npm start fails and says so, and does not hold up the next one', async () => {
    const said = await failingStart({ DOCKER_HOST: `unix://${state}/nobody.sock` });
    demand(/Docker engine.*does not answer/.test(said), said);
    demand(!existsSync(join(state, 'run/engine')), 'the engine stays noted');
  });
  await check('a port that is taken: npm start fails and names it', async () => {
    const taken = createServer().listen(Number(env.PORTICO_PORT_BASE) + 1, '127.0.0.1');
    try {
      const said = await failingStart();
      demand(/port \d+, which is for redis, is taken/.test(said), said);
    } finally {
      taken.close();
      await stop();
    }
  });
  await check('npm start', () => start());
  await check('every service is ready when it returns', () => becomes200(ready, 1_000));
  await check('ports are on loopback only', async () => engine.demandLoopback(await engine.of(project)));
  await check("README's lines", () => readmeLines(connection, 'write'));
  await check('what they wrote', () => readmeLines(connection, 'read'));
  for (const id of await engine.of(project)) {
    const name = (await engine.inspect(id)).Config.Labels['com.docker.compose.service'];
    await check(`${name} crashes and comes back`, async () => {
      await engine.crash(id);
      await becomes200(ready, hangsMs);
    });
  }
  await check('what was written before the crashes', () => readmeLines(connection, 'read'));
  await check('npm start beside it changes nothing', async () => {
    const said = await start();
    demand(/runs already/.test(said), said);
  });
  await check('another engine wished for while these run: refused', async () => {
    const said = await failingStart({ PORTICO_BACKENDS: 'native' });
    demand(/started with docker: npm stop/.test(said), said);
  });
  await check('npm stop leaves no container, network or anonymous volume', async () => {
    await stop();
    demand((await engine.of(project)).length === 0, 'a container is left');
    demand((await engine.networks(project)).length === 0, 'a network is left');
    const after = await engine.anonymousVolumes();
    demand(after.join() === anonymous.join(), `volumes: ${after.join()}`);
  });
  await check('npm start again: the data are there', async () => {
    await start();
    await readmeLines(connection, 'read');
  });
  await check('new passwords over the volumes of the old ones', async () => {
    await stop();
    const file = join(state, 'secrets.env');
    const kept = readFileSync(file, 'utf8').replace(
      /^PORTICO_(REDIS|POSTGRES|POSTGRES_ADMIN|RABBITMQ)_PASSWORD=.*\n/gm,
      '',
    );
    writeFileSync(file, kept);
    await start();
    await becomes200(ready, 1_000);
    await readmeLines(connection, 'read');
  });
  await check(
    'an image that cannot be had: the others start, the exit code says that one is missing',
    async () => {
      await stop();
      const image = namedImages().find((name) => name?.startsWith('rabbitmq:'));
      await engine.docker(['tag', image, 'portico-test/kept']);
      await engine.docker(['image', 'rm', image]);
      try {
        const said = await failingStart();
        demand(/rabbitmq +NOT AVAILABLE: Docker: /.test(said), said);
      } finally {
        await engine.docker(['tag', 'portico-test/kept', image]);
        await engine.docker(['image', 'rm', 'portico-test/kept']);
        await stop();
      }
    },
  );
  await stop().catch(() => undefined);
  for (const volume of await engine.volumes(project)) await engine.docker(['volume', 'rm', volume]);
}
