import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { services } from '../../src/services/index.js';
import { kafkaNamespace } from '../support/broker/kafka.js';
import { RUNNABLE, type Snippet, snippetsOf } from '../support/docs.js';
import { eventually } from '../support/eventually.js';
import { queueNamespace, type Receiver, startReceiver } from '../support/queue/queue.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKEN_VARIABLES, TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

/** Runs the blocks of the pages, as their reader would: in order, with `connection.env` read. */
const PAGES = [
  'README',
  'docs/kv',
  'docs/vector',
  'docs/broker',
  'docs/queue',
  'docs/deploy',
  'docs/migrate',
].concat(['docs/test-in-ci', 'docs/troubleshoot']);

const run = promisify(execFile);
const queue = queueNamespace();
let kafka: Awaited<ReturnType<typeof kafkaNamespace>>;
let gateway: SpawnedGateway;
let receiver: Receiver;
let folder: string;
let environment: NodeJS.ProcessEnv;
/** Topics that the pages name, as the backend of the tests has them. */
const topics: Record<string, string> = {};

/** What `npm start` writes: the values under Portico's names and under those of the SDKs. */
function connection(): Record<string, string> {
  const values: Record<string, string> = { PORTICO_URL: gateway.url };
  for (const { name, card } of services) {
    const url = `${gateway.url}/${name}`;
    for (const variable of [`PORTICO_${name.toUpperCase()}_URL`, ...card.urlNames]) values[variable] = url;
    for (const { variable, otherNames } of card.credentials)
      for (const each of [variable, ...otherNames]) values[each] = TOKEN_VARIABLES[variable] as string;
  }
  return values;
}

/** Nothing goes to addresses of others, and each file of the tests has topics of its own. */
function here(text: string): string {
  return text
    .replace(/https:\/\/example\.com|http:\/\/127\.0\.0\.1:3000/g, receiver.url)
    .replace(/\b(greetings|orders)\b(?!\.)/g, (name) => topics[name] ?? name);
}

beforeAll(async () => {
  receiver = await startReceiver();
  kafka = await kafkaNamespace();
  topics.greetings = await kafka.topic('greetings', 1);
  topics.orders = await kafka.topic('orders', 1);
  gateway = await spawnGateway({
    kv: {},
    vector: { database: { schema: 'docs_pages' } },
    broker: {},
    queue: { ...queue.config, allowedDestinations: ['127.0.0.1'] },
  });
  folder = await mkdtemp(join(tmpdir(), 'portico-docs-'));
  await mkdir(join(folder, '.portico'));
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  const values = connection();
  const lines = Object.entries(values).map(([name, value]) => `${name}='${value}'\n`);
  await writeFile(join(folder, '.portico/connection.env'), lines.join(''));
  environment = { PATH: process.env.PATH, ...values };
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await fetch(`${gateway.url}/kv`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.kv}` },
    body: "[\"EVAL\",\"for _, u in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', u) end\",0]",
  });
  await fetch(`${gateway.url}/kv`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.kv}` },
    body: '["ACL","DELUSER","bob"]',
  });
  expect(await gateway.stop()).toBe(0);
  await receiver.stop();
  await kafka.dispose();
  await queue.remove();
  await dropSchema('docs_pages');
  await rm(folder, { recursive: true, force: true });
});

/** A reply of 4xx or 5xx ends the block, as a reader would be stuck there. */
const SHELL = `set -euo pipefail
curl() {
  case " $* " in *" --fail "*) command curl "$@"; return;; esac
  command curl --fail-with-body --show-error "$@" || [ -n "\${MAY_FAIL-}" ]
}
portico() { "${process.execPath}" "${resolve('compose/portico.mjs')}" "$@"; }
`;

async function runShell(text: string): Promise<void> {
  const mayFail = text.includes('Bearer wrong') ? 'MAY_FAIL=yes\n' : '';
  await run('bash', ['-c', SHELL + mayFail + text], { cwd: folder, env: environment, timeout: 60_000 }).catch(
    ({ stdout, stderr }) => {
      throw new Error(`${text}\n${stdout}\n${stderr}`);
    },
  );
}

/** Runs a program; what it exports is called as its platform would. */
async function runProgram(name: string, text: string): Promise<void> {
  const call = `
    import * as it from './${name}.ts';
    const request = new Request('http://127.0.0.1/');
    const replies = [it.default?.fetch?.(request, process.env), it.GET?.(request), globalThis.served?.(request)];
    for (const reply of await Promise.all(replies)) if (reply && !reply.ok) throw new Error(await reply.text());
    const answer = await it.handler?.({});
    if (answer && answer.statusCode >= 300) throw new Error(answer.body);
    process.exit(0);`;
  await writeFile(join(folder, `${name}.ts`), text);
  await writeFile(join(folder, `${name}-call.ts`), call);
  const outfile = join(folder, `${name}.mjs`);
  const banner =
    'globalThis.Deno = { serve: (f) => { globalThis.served = f; }, env: { get: (n) => process.env[n] } };';
  await build({
    absWorkingDir: folder,
    entryPoints: [`${name}-call.ts`],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'silent',
    banner: { js: banner },
  });
  await run(process.execPath, [outfile], { cwd: folder, env: environment, timeout: 60_000 });
}

/** Programs that export something stand alone; the others of a page are one, in order. */
function programsOf(snippets: readonly Snippet[]): string[] {
  const texts = snippets.filter(({ language }) => language === 'ts').map(({ text }) => text);
  const isAlone = (text: string) => /^export |^Deno\./m.test(text);
  const together = texts.filter((text) => !isAlone(text)).join('\n');
  return [...texts.filter(isAlone), ...(together === '' ? [] : [together])];
}

it.each(PAGES)('%s does what it shows', async (page) => {
  const snippets = snippetsOf(`${page}.md`).filter(
    ({ language, notRun }) => RUNNABLE.includes(language) && notRun === undefined,
  );
  expect(snippets).not.toEqual([]);
  const shell = snippets.filter(({ language }) => language === 'sh').map(({ text }) => text);
  if (shell.length > 0) await runShell(here(shell.join('\n')));
  for (const [i, text] of programsOf(snippets).entries())
    await runProgram(`${page.replace('/', '-')}-${i}`, here(text));
});
