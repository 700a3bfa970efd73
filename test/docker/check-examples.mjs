import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parse } from 'yaml';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { root } from '../../compose/state/profile.mjs';
import { buildDev, devImage } from './check-dev.mjs';
import { becomes200, containers, hangsMs } from './containers.mjs';
import { cache } from './engine.mjs';
import { hasImage } from './images.mjs';
import { demand } from './score.mjs';

const examples = join(root, 'docs/examples');
const service = 'portico-test-service';
const limitMs = hangsMs;

/** The examples as their README says. @param {import('./run.mjs').Bench} bench */
export async function checkExamples({ env, work, score: { check } }) {
  const engine = containers(env);
  if (!(await hasImage(env, devImage))) await check('docker build of portico:dev', () => buildDev(engine));
  const ports = {
    PORTICO_HTTP_PORT: env.PORTICO_HTTP_PORT,
    PORTICO_RESET_PORT: String(Number(env.PORTICO_HTTP_PORT) - 1),
  };

  await check('e2e-compose: its tests pass', async () => {
    const compose = (...args) =>
      runProgram('docker', ['compose', ...args], {
        env: { ...env, ...ports },
        cwd: join(examples, 'e2e-compose'),
        timeoutMs: limitMs,
      });
    try {
      const said = await compose('up', '--abort-on-container-exit', '--exit-code-from', 'tests');
      demand(/pass 2/.test(said), said.slice(-1_000));
      const id = (await engine.of('e2e-example'))[0];
      demand(id !== undefined, 'no container');
    } finally {
      await compose('down', '--volumes');
    }
  });
  await check('github-actions: the service container becomes healthy and answers', () =>
    githubService(engine, ports),
  );
  await check('testcontainers: its tests pass', () => testcontainers(env, work));
}

/** Starts the workflow's service as GitHub's runner does: the container alone, with its variables and ports. */
async function githubService(engine, ports) {
  const workflow = parse(readFileSync(join(examples, 'github-actions/portico.yml'), 'utf8'));
  const job = workflow.jobs.tests;
  const { env: variables } = job.services.portico;
  const options = Object.entries(variables).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const published = [
    '-p',
    `127.0.0.1:${ports.PORTICO_HTTP_PORT}:8070`,
    '-p',
    `127.0.0.1:${ports.PORTICO_RESET_PORT}:8071`,
  ];
  await engine.docker(['rm', '--force', '--volumes', service]).catch(() => undefined);
  try {
    await engine.docker(['run', '-d', '--name', service, ...options, ...published, devImage]);
    await becomes200(`http://127.0.0.1:${ports.PORTICO_HTTP_PORT}/readyz`, limitMs);
    const seen = (name) => job.env[name].replace('localhost:8070', `127.0.0.1:${ports.PORTICO_HTTP_PORT}`);
    const headers = { authorization: `Bearer ${seen('UPSTASH_REDIS_REST_TOKEN')}` };
    const set = await fetch(`${seen('UPSTASH_REDIS_REST_URL')}/set/a/1`, { headers });
    demand(set.status === 200, set.status);
    const vector = { authorization: `Bearer ${seen('UPSTASH_VECTOR_REST_TOKEN')}` };
    const info = await (await fetch(`${seen('UPSTASH_VECTOR_REST_URL')}/info`, { headers: vector })).json();
    demand(info.result.dimension === 3, info);
    const reset = job.steps
      .at(-1)
      .run.trim()
      .replace('localhost:8071', `127.0.0.1:${ports.PORTICO_RESET_PORT}`);
    await runProgram('sh', ['-c', reset], {});
    const got = await (await fetch(`${seen('UPSTASH_REDIS_REST_URL')}/get/a`, { headers })).json();
    demand(got.result === null, got);
  } finally {
    await engine.docker(['rm', '--force', '--volumes', service]);
  }
}

/** In a copy: its packages are no part of the checkout. The package wants a newer Node than Debian has. */
async function testcontainers(env, work) {
  const folder = join(work, 'testcontainers');
  mkdirSync(folder);
  cpSync(join(examples, 'testcontainers'), folder, { recursive: true });
  const node = join(cache, 'context/node/bin');
  const path = existsSync(node) ? [node, env.PATH ?? process.env.PATH].join(delimiter) : process.env.PATH;
  // its container that cleans up comes from a registry; what is started here is stopped by the test
  const own = {
    ...env,
    PATH: path,
    TESTCONTAINERS_RYUK_DISABLED: 'true',
    TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1',
  };
  await runProgram('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], {
    env: own,
    cwd: folder,
    timeoutMs: limitMs,
  });
  const said = await runProgram('npm', ['test'], { env: own, cwd: folder, timeoutMs: limitMs });
  demand(/pass 2/.test(said), said.slice(-1_000));
}
