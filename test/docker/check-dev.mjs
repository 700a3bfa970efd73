import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../compose/state/profile.mjs';
import { becomes200, containers, hangsMs } from './containers.mjs';
import { readmeLines } from './readme.mjs';
import { demand } from './score.mjs';

export const devImage = 'portico:dev';
const name = 'portico-test-dev';
const volume = 'portico-test-dev';
const buildLimitMs = 900_000;
/** What is promised is 15 s on two idle cores; how long it took is printed, since no verdict may hang on speed. */
const readyLimitMs = hangsMs;

/** Builds the image with everything in it. */
export function buildDev(engine) {
  const file = join(root, 'compose/Dockerfile');
  return engine.docker(
    ['build', '--quiet', '--network', 'host', '--target', 'dev', '--tag', devImage, '--file', file, root],
    buildLimitMs,
  );
}

/** The image with the backends in it. @param {import('./run.mjs').Bench} bench */
export async function checkDev({ env, work, score: { check, say } }) {
  const engine = containers(env);
  const url = `http://127.0.0.1:${env.PORTICO_HTTP_PORT}`;
  const connection = join(work, 'dev-connection.env');
  const publish = ['-p', `127.0.0.1:${env.PORTICO_HTTP_PORT}:8070`];
  const demandRunning = async () => {
    const { Running } = (await engine.inspect(name)).State;
    if (!Running) throw new Error(`it has ended: ${await engine.docker(['logs', name])}`);
  };
  const run = async (...more) => {
    const begin = Date.now();
    await engine.docker(['run', '-d', '--name', name, ...publish, ...more, devImage]);
    await becomes200(`${url}/readyz`, readyLimitMs, demandRunning);
    say(`ready after ${((Date.now() - begin) / 1000).toFixed(1)} s`);
  };
  const remove = () => engine.docker(['rm', '--force', '--volumes', name]).catch(() => undefined);
  const stop = async () => {
    await engine.docker(['stop', '--time', '60', name], 90_000);
    const { ExitCode } = (await engine.inspect(name)).State;
    demand(ExitCode === 0 || ExitCode === 130, `exit code ${ExitCode}`);
  };
  const connect = async () => {
    const text = await engine.docker(['exec', name, 'cat', '/data/connection.env']);
    writeFileSync(connection, text.replace(/http:\/\/[\d.]+:8070/g, url));
  };

  await check('docker build of portico:dev', () => buildDev(engine));
  await remove();
  await check('docker run: every service is ready', () => run('-v', `${volume}:/data`));
  await check('it prints the card', async () => {
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const said = await engine.docker(['logs', name]);
    demand(/kv +http/.test(said) && /token +\S{40}/.test(said), said);
  });
  await check('not root', async () => {
    const said = await engine.docker([
      'exec',
      name,
      'sh',
      '-c',
      'cat /proc/[0-9]*/status | grep ^Uid | sort -u',
    ]);
    demand(!/^Uid:\s0/m.test(said), said);
  });
  await check("README's lines", async () => {
    await connect();
    await readmeLines(connection, 'write');
    await readmeLines(connection, 'read');
  });
  await check('docker stop, and a new container on the same volume: the data are there', async () => {
    await stop();
    await remove();
    await run('-v', `${volume}:/data`);
    await connect();
    await readmeLines(connection, 'read');
  });
  await check('killed, and started again', async () => {
    await engine.docker(['kill', name]);
    await engine.docker(['start', name]);
    await becomes200(`${url}/readyz`, readyLimitMs, demandRunning);
    await readmeLines(connection, 'read');
  });
  await remove();
  await check('fixed tokens, a read-only image and data in memory', () =>
    run(
      '-e',
      'PORTICO_TEST_TOKENS=on',
      '--read-only',
      '--tmpfs',
      '/tmp',
      '--tmpfs',
      '/data:uid=1000,gid=1000',
    ),
  );
  await check('reset wipes what was written, and the gateway goes on', async () => {
    await connect();
    await readmeLines(connection, 'write');
    await engine.docker(['exec', name, 'reset']);
    const error = await readmeLines(connection, 'read').catch((reason) => reason);
    demand(/"result":null/.test(error.message), error);
    await readmeLines(connection, 'write');
    await readmeLines(connection, 'read');
  });
  await remove();
  await engine.docker(['volume', 'rm', '--force', volume]);
}
