import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Finished {
  code: number;
  out: string;
  err: string;
}

/** The command line as a user gives it. */
function portico(...args: string[]): Promise<Finished> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['compose/portico.mjs', ...args], (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

/** Runs an expression over the exports of a module of the launcher, or of the test runner. */
function evaluate(file: string, expression: string): Promise<unknown> {
  const script = `import * as m from './${file}'; console.log(JSON.stringify(${expression}));`;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--input-type=module', '-e', script], (error, out) => {
      if (error === null) resolve(new Response(out).json());
      else reject(error);
    });
  });
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const lockFile = JSON.parse(readFileSync('package-lock.json', 'utf8'));

describe('portico', () => {
  it('lists its commands one a line, and prints its version', async () => {
    const { code, out } = await portico('--help');
    expect(code).toBe(0);
    for (const name of ['start', 'stop', 'status', 'serve', 'check', 'tokens', 'doctor'])
      expect(out).toMatch(new RegExp(`^ +portico ${name}\\b`, 'm'));
    expect(await portico('--version')).toEqual({ code: 0, out: `${manifest.version}\n`, err: '' });
  });

  it.each([
    [['begin'], /^There is no command 'begin'; .*\n$/],
    [['start', '--deatch'], /^Unknown option '--deatch'; .*\n$/],
    [['start', '--config'], /^Option '--config <value>' argument missing; .*\n$/],
    [['stop', '--detach'], /^portico stop has no option --detach\.\n$/],
    [['start', 'redis'], /^portico start does not take 'redis'\.\n$/],
  ])('refuses %j in one sentence, with exit code 64', async (args, words) => {
    expect(await portico(...args)).toEqual({ code: 64, out: '', err: expect.stringMatching(words) });
  });
});

describe('a second start', () => {
  it('names the variables whose values the running gateway does not have, and no secret', async () => {
    const running = { report: {}, env: { PORTICO_QUEUE_TOKEN: 'a', PORTICO_HTTP_PORT: '8070' } };
    const differing = (env: Record<string, string>) =>
      evaluate(
        'compose/launcher/gateway.mjs',
        `m.ignoredSettings(${JSON.stringify(running)}, ${JSON.stringify(env)})`,
      );
    expect(await differing({ PORTICO_QUEUE_TOKEN: 'a', HOME: '/root' })).toEqual([]);
    expect(
      await differing({ PORTICO_QUEUE_TOKEN: 'b', PORTICO_QUEUE_ALLOWED_DESTINATIONS: '127.0.0.1' }),
    ).toEqual(['PORTICO_QUEUE_ALLOWED_DESTINATIONS', 'PORTICO_QUEUE_TOKEN']);
  });
});

describe('the card', () => {
  it("shows of each backend's reason what is wrong and the way out, however much stands between", async () => {
    const report = { url: 'http://a', services: ['queue'], urls: { queue: 'http://a/queue' } };
    const reasons = [`postgres: the data are old${' .'.repeat(500)} Move them away.`, 'rabbitmq: no room'];
    const env = { PORTICO_QUEUE_MISSING: reasons.join('; ') };
    const about = { file: '/x', down: [], notes: [], logs: 'logs/' };
    const text = await evaluate(
      'compose/launcher/card.mjs',
      `m.card(...${JSON.stringify([report, env, about])})`,
    );
    expect(text).toMatch(
      /NOT AVAILABLE: postgres: the data are old .*all of it in the gateway's log.* Move them away\.\n +NOT AVAILABLE: rabbitmq: no room\n/,
    );
    expect(String(text).length).toBeLessThan(1_500);
  });
});

describe('Node', () => {
  it('fits the gateway where package.json names it as tested, and where it is newer', async () => {
    expect(manifest.engines.node).toBe('^22.19.0 || ^24.0.0');
    const versions = ['18.20.8', '20.20.2', '22.18.0', 'v22.19.0', '22.23.3', '23.11.0', '24.0.0', '26.10.0'];
    const fitting = await evaluate('compose/install/node.mjs', `${JSON.stringify(versions)}.filter(m.isFit)`);
    expect(fitting).toEqual(['v22.19.0', '22.23.3', '24.0.0', '26.10.0']);
  });

  it('that is fetched is one that fits, named with its digests for both architectures', async () => {
    const { version, node, npm } = JSON.parse(readFileSync('compose/install/node-lock.json', 'utf8'));
    expect(await evaluate('compose/install/node.mjs', `m.isFit('${version}')`)).toBe(true);
    for (const one of [node.x64, node.arm64, npm]) expect(one.integrity).toMatch(/^sha512-[\w+/]{86}==$/);
    expect([node.x64.version, node.arm64.version]).toEqual([version, version]);
  });
});

describe('package-lock.json', () => {
  it('names a digest for every package, and no host', () => {
    const rows = Object.entries<{ integrity?: string; resolved?: string }>(lockFile.packages);
    const wrong = rows.filter(([path, row]) => path !== '' && (!row.integrity || row.resolved));
    expect(wrong).toEqual([]);
  });
});

describe('npm test -- FILE', () => {
  it.each([
    [[], ['redis', 'postgres', 'kafka', 'rabbitmq']],
    [['test/unit'], []],
    [['test/integration/kv/commands.test.ts'], ['redis']],
    [['test/integration/queue'], ['postgres', 'rabbitmq']],
    [
      ['test/acceptance/vector-sdk.test.ts', 'test/integration/broker'],
      ['postgres', 'kafka'],
    ],
    [
      ['-t', 'some name'],
      ['redis', 'postgres', 'kafka', 'rabbitmq'],
    ],
  ])('with %j starts %j', async (args, names) => {
    expect(await evaluate('test/run/lanes.mjs', `m.backendsFor(${JSON.stringify(args)})`)).toEqual(names);
  });
});
