import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type KafkaNamespace, kafkaNamespace } from '../support/broker/kafka.js';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { queueNamespace } from '../support/queue/queue.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

/**
 * Clients are generated from config/openapi.json by the tools that people use, compiled, and make a call to each service.
 * Needs Java and python3 with venv, npm's, PyPI's and Maven's registry, and Go for the client in Go.
 */
const run = promisify(execFile);
const DOCUMENT = resolve('config/openapi.json');
const PROGRAMS = resolve('test/full/openapi-clients');
const TOOLS = [
  '@redocly/cli@2.77.0',
  '@hey-api/openapi-ts@0.95.0',
  'openapi-typescript@7.13.0',
  'openapi-fetch@0.17.0',
  'typescript@5.9.3',
];
const GENERATOR = 'org/openapitools/openapi-generator-cli/7.25.0/openapi-generator-cli-7.25.0.jar';
const GENERATOR_SHA256 = '41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae';

jest.setTimeout(900_000);

const queue = queueNamespace();
let gateway: RunningGateway;
let kafka: KafkaNamespace;
let folder: string;
let jar: string;
let told: NodeJS.ProcessEnv;

const tool = (name: string) => join(folder, 'node_modules/.bin', name);
/** In the folder, with what a program must know. */
const inside = (file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  run(file, [...args], {
    cwd: folder,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', ...env },
    maxBuffer: 1e8,
  });

/** The generator's jar, which is checked and kept for the next time. */
async function generatorJar(): Promise<string> {
  const kept = join(tmpdir(), `openapi-generator-${GENERATOR_SHA256.slice(0, 12)}.jar`);
  const isRight = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex') === GENERATOR_SHA256;
  if (await readFile(kept).then(isRight, () => false)) return kept;
  const repository = process.env.PORTICO_MAVEN_MIRROR || 'https://repo.maven.apache.org/maven2';
  const bytes = Buffer.from(await (await fetch(`${repository}/${GENERATOR}`)).arrayBuffer());
  expect(isRight(bytes)).toBe(true);
  await writeFile(`${kept}.new`, bytes);
  await rename(`${kept}.new`, kept);
  return kept;
}

/** Java as the launcher brings it for Kafka, where there is none. */
async function java(): Promise<string> {
  const programs = '.portico/programs';
  for (const name of await readdir(programs, { recursive: true }).catch(() => []))
    if (/jvm\/[^/]+\/bin\/java$/.test(name)) return resolve(programs, name);
  return 'java';
}

const generate = async (language: string, ...rest: string[]) =>
  inside(await java(), ['-jar', jar, 'generate', '-i', DOCUMENT, '-g', language, ...rest]);

/** What a program printed that called each service. */
async function called(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<unknown> {
  return JSON.parse((await inside(file, args, { ...told, ...env })).stdout);
}

/** Checks the types of a program in TypeScript and runs it. */
async function calledByTypeScript(program: string): Promise<unknown> {
  const options =
    '--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler';
  await inside(tool('tsc'), [...options.split(' '), '--types', 'node', program]).catch(({ stdout }) => {
    throw new Error(stdout);
  });
  const bundle = `${program}.mjs`;
  const bundling = [
    '--bundle',
    '--platform=node',
    '--format=esm',
    '--log-level=error',
    `--outfile=${bundle}`,
  ];
  await inside(resolve('node_modules/.bin/esbuild'), [program, ...bundling]);
  return called(process.execPath, [bundle]);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-clients-'));
  // called text, as what they import is not here
  for (const name of await readdir(PROGRAMS))
    await cp(join(PROGRAMS, name), join(folder, name.replace(/\.txt$/, '')));
  await writeFile(join(folder, 'package.json'), '{"type":"module","private":true}');
  await inside('npm', ['install', '--no-audit', '--no-fund', '--save-exact', ...TOOLS, '@types/node@22']);
  jar = await generatorJar();
  kafka = await kafkaNamespace();
  gateway = await startGateway({
    kv: {},
    vector: { database: { schema: 'openapi_clients' }, indexes: [{ dimension: 2 }] },
    broker: {},
    queue: queue.config,
  });
  const topic = await kafka.topic('clients', 1);
  told = {
    GATEWAY: gateway.url,
    TOPIC: topic,
    KV: TOKENS.kv,
    VECTOR: TOKENS.vector,
    QUEUE: TOKENS.queue,
    BROKER_USERNAME: TOKENS.username,
    BROKER_PASSWORD: TOKENS.password,
  };
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  const keys = ['openapi-fetch', 'hey-api', 'typescript-fetch', 'python', 'go'].map((name) => `of-${name}`);
  await fetch(`${gateway?.url}/kv`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.kv}` },
    body: JSON.stringify(['DEL', ...keys]),
  });
  await gateway?.stop();
  await kafka?.dispose();
  await queue.remove();
  await dropSchema('openapi_clients');
  await rm(folder, { recursive: true, force: true });
});

const expectAll = (reply: unknown) =>
  expect(reply).toEqual({
    kv: 'OK',
    upsert: 'Success',
    query: 'a',
    broker: told.TOPIC,
    queue: 'https://example.com/hook',
  });

it('passes redocly lint without an error or a warning', async () => {
  await writeFile(join(folder, 'redocly.yaml'), 'extends: [recommended]\n');
  const { stdout, stderr } = await inside(tool('redocly'), ['lint', '--format=json', DOCUMENT]);
  const { totals } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as { totals: object };
  expect({ totals, stderr }).toMatchObject({ totals: { errors: 0 } });
});

it('becomes a client by openapi-typescript', async () => {
  await inside(tool('openapi-typescript'), [DOCUMENT, '-o', 'api.ts']);
  expectAll(await calledByTypeScript('call-openapi-fetch.ts'));
});

it('becomes a client by @hey-api/openapi-ts', async () => {
  await inside(tool('openapi-ts'), ['-i', DOCUMENT, '-o', 'hey']);
  expectAll(await calledByTypeScript('call-hey-api.ts'));
});

it('becomes a client by openapi-generator for typescript-fetch', async () => {
  await generate('typescript-fetch', '-o', 'typescript-fetch');
  expectAll(await calledByTypeScript('call-typescript-fetch.ts'));
});

it('becomes a client by openapi-generator for python', async () => {
  await generate('python', '-o', 'python');
  await inside('python3', ['-m', 'venv', 'venv']);
  await inside(join(folder, 'venv/bin/pip'), ['install', '--quiet', './python']);
  expectAll(await called(join(folder, 'venv/bin/python'), ['call.py']));
});

it('becomes a client by openapi-generator for go', async () => {
  await mkdir(join(folder, 'go/portico'), { recursive: true });
  await generate('go', '-o', 'go/portico', '--additional-properties=packageName=portico,withGoMod=false');
  await rm(join(folder, 'go/portico/test'), { recursive: true, force: true });
  await rename(join(folder, 'call.go'), join(folder, 'go/main.go'));
  await writeFile(join(folder, 'go/go.mod'), 'module portico-call\n\ngo 1.21\n');
  expectAll(await called('go', ['run', '-C', 'go', '.']));
});
