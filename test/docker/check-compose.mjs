import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { root } from '../../compose/state/profile.mjs';
import { parseEnvFile } from '../../compose/state/secrets.mjs';
import { cards, urlVariable } from '../../compose/state/services.mjs';
import { becomes200, containers, hangsMs } from './containers.mjs';
import { readmeLines } from './readme.mjs';
import { demand } from './score.mjs';

const project = 'portico-test';
const upLimitMs = 300_000;

const portsOf = (base) => ({
  PORTICO_REDIS_PORT: String(base + 1),
  PORTICO_POSTGRES_PORT: String(base + 2),
  PORTICO_KAFKA_PORT: String(base + 3),
  PORTICO_RABBITMQ_PORT: String(base + 5),
  PORTICO_RABBITMQ_MANAGEMENT_PORT: String(base + 6),
});

/** The compose file with Portico inside. @param {import('./run.mjs').Bench} bench */
export async function checkCompose({ env: given, work, score: { check } }) {
  const base = Number(given.PORTICO_PORT_BASE);
  const env = { ...given, ...portsOf(base), PORTICO_STATE_DIR: join(work, 'compose-state') };
  const url = `http://127.0.0.1:${env.PORTICO_HTTP_PORT}`;
  const engine = containers(env);
  const anonymous = await engine.anonymousVolumes();
  const secrets = () =>
    runProgram('node', ['compose/secrets.mjs'], { env, cwd: root }).then((path) => path.trim());
  let file = await secrets();
  const compose = (args, timeoutMs = hangsMs) =>
    runProgram(
      'docker',
      ['compose', '-p', project, '--env-file', file, '-f', 'compose/compose.yaml', ...args],
      {
        env,
        cwd: root,
        timeoutMs,
      },
    );
  const up = () => compose(['up', '-d', '--wait', '--wait-timeout', '240'], upLimitMs);
  const portico = async () => (await compose(['ps', '-q', 'portico'])).trim();
  const connection = join(work, 'compose-connection.env');
  const connect = () => writeConnection(connection, url, file, compose);

  await check('docker compose config', () => compose(['config', '--quiet']));
  await check('docker compose build', () => compose(['build'], 600_000));
  await check('docker compose up --wait', up);
  await check('every service is ready when it returns', () => becomes200(`${url}/readyz`, 1));
  await check('ports are on loopback only', async () => engine.demandLoopback(await engine.of(project)));
  await check("README's lines with the tokens of its own command", async () => {
    await connect();
    await readmeLines(connection, 'write');
    await readmeLines(connection, 'read');
  });
  await check('Portico is not root and can write nowhere', async () => {
    const script = `require('fs').writeFileSync('/app/x', '')`;
    const said = await compose(['exec', '-T', 'portico', 'node', '-p', 'process.getuid()']);
    demand(said.trim() === '1000', `user ${said}`);
    const error = await compose(['exec', '-T', 'portico', 'node', '-e', script]).catch((reason) => reason);
    demand(/EROFS/.test(error.message), error);
  });
  await check('every container crashes and comes back', async () => {
    for (const id of await engine.of(project)) await engine.crash(id);
    await becomes200(`${url}/readyz`, hangsMs);
    await readmeLines(connection, 'read');
  });
  await check('docker stop: in time, exit code 0', async () => {
    const id = await portico();
    const begin = Date.now();
    await engine.docker(['stop', id]);
    // of 10 s that Docker gives it; 0.3 to 2 s when the machine is idle
    demand(Date.now() - begin < 9_000, `${Date.now() - begin} ms`);
    const { ExitCode } = (await engine.inspect(id)).State;
    demand(ExitCode === 0, `exit code ${ExitCode}`);
  });
  await check('down, then up: the data are there', async () => {
    await compose(['down']);
    await up();
    await readmeLines(connection, 'read');
  });
  await check('new secrets over the volumes of the old ones', async () => {
    await compose(['down']);
    env.PORTICO_STATE_DIR = join(work, 'compose-state-2');
    file = await secrets();
    await up();
    await connect();
    await readmeLines(connection, 'read');
  });
  await check('down --volumes leaves nothing', async () => {
    await compose(['down', '--volumes']);
    const left = [
      ...(await engine.of(project)),
      ...(await engine.volumes(project)),
      ...(await engine.networks(project)),
    ];
    demand(left.length === 0, left);
    const after = await engine.anonymousVolumes();
    demand(after.join() === anonymous.join(), `volumes: ${after.join()}`);
  });
  await check('a volume of an older Postgres is refused in one sentence, and kept', async () => {
    const volume = `${project}_postgres`;
    const inVolume = (script) =>
      engine.docker(['run', '--rm', '-v', `${volume}:/v`, 'portico-test/trixie', 'sh', '-c', script]);
    await compose(['create', 'postgres']);
    await inVolume('echo 17 > /v/PG_VERSION');
    await compose(['up', '-d', 'postgres']);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const said = await compose(['logs', 'postgres']);
    demand(/data of PostgreSQL 17.*PostgreSQL 18 cannot read/.test(said), said);
    demand((await inVolume('cat /v/PG_VERSION')).trim() === '17', 'the volume was changed');
  });
  await compose(['down', '--volumes']).catch(() => undefined);
}

/** What `npm start` writes for itself, of the secrets and of the command that prints tokens. */
async function writeConnection(file, url, secretsFile, compose) {
  const tokens = JSON.parse(await compose(['exec', '-T', 'portico', 'node', 'dist/main.js', 'tokens']));
  const pairs = {
    ...parseEnvFile(readFileSync(secretsFile, 'utf8')),
    PORTICO_URL: url,
    ...Object.fromEntries(Object.keys(cards).map((name) => [urlVariable(name), `${url}/${name}`])),
    PORTICO_KV_TOKEN: tokens.kv.default.standard,
  };
  writeFileSync(
    file,
    Object.entries(pairs)
      .map(([name, value]) => `${name}='${value}'\n`)
      .join(''),
  );
}
