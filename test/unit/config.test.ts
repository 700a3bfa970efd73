import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { checkReport } from '../../src/config/check-report.js';
import { ConfigError, loadConfig } from '../../src/config/load.js';
import { configLeaves, enabledServices } from '../../src/config/schema.js';
import { unservedText } from '../../src/config/unserved-services.js';
import { keyText } from '../../src/lib/settings/settings-tree.js';
import { services } from '../../src/services/index.js';
import type { Service } from '../../src/services/service.js';
import { gatewayEnvironment } from '../support/environment.js';
import { TOKEN_VARIABLES } from '../support/tokens.js';

const ADDRESSES = {
  PORTICO_REDIS_URL: 'redis://127.0.0.1:6379',
  PORTICO_DATABASE_URL: 'postgres://user:word@127.0.0.1/db',
  PORTICO_KAFKA_BROKERS: '127.0.0.1:9092,127.0.0.1:9093',
  PORTICO_RABBITMQ_URL: 'amqp://user:word@127.0.0.1',
};
const COMPLETE = { ...TOKEN_VARIABLES, ...ADDRESSES };

const ADDRESSES_AND_OTHERS = { ...COMPLETE, PORTICO_KV_TOKEN: '', PORTICO_KV_READONLY_TOKEN: '' };

function problemsOf(
  document: Record<string, unknown>,
  environment: Record<string, string> = COMPLETE,
): readonly string[] {
  try {
    loadConfig({ document, environment });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('the file config/portico.yaml', () => {
  const text = readFileSync('config/portico.yaml', 'utf8');

  it('says what holds without it', () => {
    const fromFile = loadConfig({ file: 'config/portico.yaml', environment: COMPLETE });
    const without = loadConfig({ environment: COMPLETE });
    expect(fromFile.config).toEqual(without.config);
    expect(fromFile.warnings).toEqual([]);
  });

  it('shows every key, each with a comment', () => {
    const shown = new Set(keysOf(parse(text)));
    const leaves = configLeaves();
    expect(leaves.length).toBeGreaterThan(40);
    for (const leaf of leaves) {
      expect(shown).toContain(keyText(leaf.path));
      expect(leaf.description).not.toBe('');
    }
    const lines = text.split('\n');
    const uncommented = lines.filter(
      (line, i) => /^\s*(- )?\w+: \S/.test(line) && !/ #/.test(line) && !/^\s*#/.test(lines[i - 1] ?? ''),
    );
    expect(uncommented).toEqual([]);
  });
});

function keysOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value) && typeof value[0] === 'object') return keysOf(value[0], `${path}.#`);
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([key, inner]) => keysOf(inner, path === '' ? key : `${path}.${key}`));
}

describe('environment variables', () => {
  it('set every key, by path and by short name, and win over the file', () => {
    const { config } = loadConfig({
      document: { http: { port: 1 }, kv: { databases: [{ name: 'a' }] } },
      environment: {
        ...COMPLETE,
        PORTICO_HTTP_PORT: '9000',
        PORTICO_HTTP_MAX_IN_FLIGHT: '7',
        PORTICO_LOG_LEVEL: 'debug',
        PORTICO_KV_DATABASES_1_NAME: 'b',
        PORTICO_KV_DATABASES_1_PATH: '/kv2',
        PORTICO_KV_DATABASES_1_URL: 'redis://other',
        PORTICO_KV_DATABASES_1_TOKEN: 'another-token-of-the-second-database',
        PORTICO_VECTOR_ENABLED: 'false',
      },
    });
    expect(config.http).toMatchObject({ port: 9000, maxInFlight: 7 });
    expect(config.log.level).toBe('debug');
    expect(config.services.kv).toMatchObject({
      databases: [
        {
          name: 'a',
          path: '/kv',
          token: TOKEN_VARIABLES.PORTICO_KV_TOKEN,
          url: ADDRESSES.PORTICO_REDIS_URL,
        },
        { name: 'b', path: '/kv2', url: 'redis://other' },
      ],
    });
    expect(config.services.vector?.enabled).toBe(false);
    expect(config.services.broker).toMatchObject({
      clusters: [{ brokers: ['127.0.0.1:9092', '127.0.0.1:9093'] }],
    });
  });

  it('count as absent when empty, and warn when they are no key', () => {
    const { config, warnings } = loadConfig({
      document: {},
      environment: { ...COMPLETE, PORTICO_HTTP_PORT: '', PORTICO_KV_TOKN: 'x', PORTICO_URL: 'http://x' },
    });
    expect(config.http.port).toBe(8070);
    expect(warnings).toEqual(['PORTICO_KV_TOKN: no key has this variable; did you mean PORTICO_KV_TOKEN?']);
  });
});

describe('wrong configurations', () => {
  it('name what a cluster cannot have', () => {
    const of = (database: Record<string, unknown>) =>
      problemsOf({ kv: { databases: [database] } }, { ...COMPLETE, PORTICO_REDIS_URL: '' });
    expect(of({ url: 'redis://a', cluster: true, nodes: ['b:1', '[::1]:2'] })).toEqual([]);
    expect(of({ url: 'redis://a/0', cluster: true })).toEqual([]);
    expect(of({ url: 'redis://a/1', cluster: true })).toEqual([
      'configuration: kv.databases[0].url: a cluster has database 0 only',
    ]);
    expect(of({ url: 'unix:///a', cluster: true })).toEqual([
      expect.stringMatching(/kv\.databases\[0\]\.url: .*TCP/),
    ]);
    expect(of({ url: 'redis://a', nodes: ['b:1'] })).toEqual([
      'configuration: kv.databases[0].nodes: expected cluster: true beside it',
    ]);
    expect(of({ url: 'redis://a', cluster: true, nodes: ['b'] })).toEqual([
      'configuration: kv.databases[0].nodes[0]: expected host:port',
    ]);
  });

  it('name every wrong key at once, with where it stands and why', () => {
    const problems = problemsOf(
      { http: { port: 'x', hots: 'y' }, logg: {}, kv: { databases: [{ tokn: 'z', path: 'kv' }] } },
      { ...COMPLETE, PORTICO_LOG_LEVEL: 'loud' },
    );
    expect(problems).toHaveLength(6);
    expect(problems.join('\n')).toMatch(/configuration: http\.port: .*number/);
    expect(problems).toContain('configuration: http.hots: unknown key; did you mean host?');
    expect(problems).toContain('configuration: logg: unknown key; did you mean log?');
    expect(problems).toContain('configuration: kv.databases[0].tokn: unknown key; did you mean token?');
    expect(problems.join('\n')).toMatch(/kv\.databases\[0\]\.path: expected a path/);
    expect(problems.join('\n')).toMatch(/PORTICO_LOG_LEVEL: log\.level: /);
  });

  it('ask for an HNSW index of more dimensions than it can have', () => {
    const problems = (index: object) => problemsOf({ vector: { indexes: [{ dimension: 4_001, ...index }] } });
    const tooMany = expect.stringMatching(
      /vector\.indexes\[0\]\.dimension: expected at most 4000.* or hnsw\.enabled: false/,
    );
    expect(problems({})).toEqual([tooMany]);
    expect(problems({ storage: 'halfvec' })).toEqual([tooMany]);
    expect(problems({ hnsw: { enabled: false } })).toEqual([]);
    expect(problems({ type: 'SPARSE' })).toEqual([]);
    expect(problems({ dimension: 16_001, hnsw: { enabled: false } })).toHaveLength(1);
  });

  it('never show a secret', () => {
    const problems = problemsOf(
      { kv: { databases: [{ token: 'has a blank hunter2', url: 'http://user:hunter2@x' }] } },
      TOKEN_VARIABLES as Record<string, string>,
    );
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.join('\n')).not.toContain('hunter2');
  });

  it('miss a token', () => {
    expect(problemsOf({}, ADDRESSES)).toContain(
      'configuration: kv.databases[0].token: a token is missing; set it here or by PORTICO_KV_TOKEN, or leave the service out (PORTICO_KV_ENABLED=false)',
    );
    const second = { name: 'b', path: '/b', url: 'redis://other' };
    expect(problemsOf({ kv: { databases: [{}, second] } })).toEqual([
      expect.stringMatching(/kv\.databases\[1\]\.token: .*PORTICO_KV_DATABASES_1_TOKEN/),
    ]);
    expect(() => loadConfig({ document: {}, environment: {} }, false)).not.toThrow();
  });

  it.each(['0.0.0.0', '::', '192.168.1.4', 'portico.example.com'])(
    'have weak tokens where %s is listened on',
    (host) => {
      const weak = { ...COMPLETE, PORTICO_KV_TOKEN: 'short', PORTICO_VECTOR_TOKEN: 'a'.repeat(40) };
      const problems = problemsOf({ http: { host } }, weak);
      expect(problems).toHaveLength(2);
      expect(problems.join('\n')).toMatch(
        /kv\.databases\[0\]\.token: too weak[\s\S]*vector\.indexes\[0\]\.token: too weak/,
      );
      // who gave it there is told to look there
      expect(problems.map((problem) => problem.split(':')[0])).toEqual([
        'PORTICO_KV_TOKEN',
        'PORTICO_VECTOR_TOKEN',
      ]);
      expect(
        problemsOf(
          { http: { host }, kv: { databases: [{ token: 'short' }] } },
          { ...COMPLETE, PORTICO_KV_TOKEN: '' },
        ),
      ).toEqual([expect.stringMatching(/^configuration: kv\.databases\[0\]\.token: too weak/)]);
      expect(problems.join('\n')).not.toContain('short');
      expect(problemsOf({ http: { host } })).toEqual([]);
      expect(problemsOf({ http: { host: '127.0.0.1' } }, weak)).toEqual([]);
      expect(problemsOf({ http: { host: '::1' } }, weak)).toEqual([]);
    },
  );

  it('use a path, a name or a port twice', () => {
    const second = { token: 'second-token-of-some-length-0123', url: 'redis://other' };
    expect(problemsOf({ kv: { databases: [{}, { ...second, path: '/vector', port: 8070 }] } })).toEqual([
      'configuration: kv: two entries have the name default',
      'configuration: two entries are served at the path /vector',
      'configuration: two entries use the port 8070',
    ]);
  });

  it('take the place of the own pages', () => {
    expect(problemsOf({ kv: { databases: [{ path: '/readyz' }] }, queue: { path: '/metrics/x' } })).toEqual([
      "configuration: the path /readyz belongs to the gateway's own pages",
      "configuration: the path /metrics/x belongs to the gateway's own pages",
    ]);
  });

  it('have a weak token for the metrics where others can reach them', () => {
    const http = { host: '0.0.0.0', metricsToken: 'short' };
    expect(problemsOf({ http })).toEqual([expect.stringMatching(/http\.metricsToken: too weak/)]);
    expect(problemsOf({ http: { ...http, host: '127.0.0.1' } })).toEqual([]);
  });

  it('have an administrator whose token is weak, whose tokens nobody could keep, or who takes the place of a service', () => {
    const token = 'an-administrators-token-0123456789';
    const off = () => ({ enabled: false });
    const others = { vector: off(), queue: off() };
    expect(problemsOf({ http: { host: '0.0.0.0' }, admin: { token: 'short' } })).toEqual([
      expect.stringMatching(/admin\.token: too weak/),
    ]);
    const unkept = [expect.stringMatching(/admin\.storeUrl: no service has a Postgres or a plain Redis/)];
    expect(problemsOf({ ...others, kv: off(), admin: { token } })).toEqual(unkept);
    expect(problemsOf({ ...others, kv: { databases: [{ cluster: true }] }, admin: { token } })).toEqual(
      unkept,
    );
    expect(problemsOf({ ...others, admin: { token } })).toEqual([]);
    expect(problemsOf({ ...others, kv: off(), admin: { token, storeUrl: 'redis://host' } })).toEqual([]);
    const kv = { databases: [{ path: '/admin' }] };
    expect(problemsOf({ kv, admin: { token } })).toEqual([
      'configuration: two entries are served at the path /admin',
    ]);
    expect(problemsOf({ kv })).toEqual([]);
    expect(problemsOf({ kv, http: { operationsPort: 9_000 }, admin: { token } })).toEqual([]);
  });

  it.each(['redis://host/name', 'redis:///tmp/redis.sock', 'redis://user:%zz@host'])(
    'name %s, which would be read as another address',
    (url) =>
      expect(problemsOf({ kv: { databases: [{ url }] } }, { ...COMPLETE, PORTICO_REDIS_URL: url })).toEqual([
        expect.stringMatching(/kv\.databases\[0\]\.url: expected/),
      ]),
  );

  it('give one token two meanings', () => {
    const token = 'one-token-for-both-0123456789abc';
    expect(
      problemsOf({ kv: { databases: [{ token, readOnlyToken: token }] } }, ADDRESSES_AND_OTHERS),
    ).toEqual(['configuration: kv: two tokens of default are the same']);
    const users = [
      { password: 'first-password-0123456789abcdef' },
      { password: 'second-password-0123456789abcde' },
    ];
    expect(
      problemsOf({ broker: { clusters: [{ users }] } }, { ...COMPLETE, PORTICO_BROKER_USERNAME: '' }),
    ).toEqual(['configuration: broker: two user names of default are the same']);
  });

  it('are no YAML, no keys, or no file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-config-'));
    const read = (text: string) => {
      const file = join(folder, 'x.yaml');
      writeFileSync(file, text);
      return () => loadConfig({ file, environment: gatewayEnvironment() });
    };
    expect(read('http: {port: 1')).toThrow(/x\.yaml: /);
    expect(read('http:\n  port: 1\n  port: 2')).toThrow(/unique/i);
    expect(read('- a')).toThrow(/expected keys/);
    expect(read('http: *nowhere')).toThrow(/x\.yaml: .*alias/i);
    expect(() => loadConfig({ file: join(folder, 'none.yaml'), environment: {} })).toThrow(
      /none\.yaml: cannot be read \(ENOENT\)/,
    );
    rmSync(folder, { recursive: true });
  });
});

describe('a service without the address of its backend', () => {
  const hasBackend = ({ card }: Service) => card.needs.length > 0;
  const served = (environment: Record<string, string>, document: Record<string, unknown> = {}) => {
    const { config, unserved } = loadConfig({
      document,
      environment: { ...TOKEN_VARIABLES, ...environment },
    });
    return {
      on: enabledServices(config).flatMap(({ service }) => (hasBackend(service) ? service.name : [])),
      off: unserved.map(unservedText),
    };
  };
  const { PORTICO_REDIS_URL, PORTICO_DATABASE_URL, PORTICO_KAFKA_BROKERS, PORTICO_RABBITMQ_URL } = ADDRESSES;

  it('is off, needs no token, and says what would turn it on', () => {
    expect(
      loadConfig({ environment: { PORTICO_REDIS_URL, PORTICO_KV_TOKEN: 'a-token' } }).config,
    ).toBeDefined();
    expect(served({ PORTICO_REDIS_URL })).toEqual({
      on: ['kv'],
      off: [
        'vector is off: no address of its backend; vector.database.url (PORTICO_DATABASE_URL) would turn it on',
        'broker is off: no address of its backend; broker.clusters[0].brokers (PORTICO_KAFKA_BROKERS) would turn it on',
        'queue is off: no address of its backend; queue.rabbitmqUrl (PORTICO_RABBITMQ_URL) and queue.databaseUrl (PORTICO_DATABASE_URL) would turn it on',
      ],
    });
    expect(served({ PORTICO_KAFKA_BROKERS }).on).toEqual(['broker']);
    expect(served(ADDRESSES)).toEqual({ on: ['kv', 'vector', 'broker', 'queue'], off: [] });
    expect(served({ PORTICO_REDIS_URL, PORTICO_QUEUE_ENABLED: 'false' }).off).toHaveLength(2);
  });

  it("is not asked for by an address that was given for another's sake", () => {
    const { on, off } = served({ PORTICO_DATABASE_URL });
    expect(on).toEqual(['vector']);
    expect(off[2]).toBe(
      'queue is off: no address of its backend; queue.rabbitmqUrl (PORTICO_RABBITMQ_URL) would turn it on',
    );
    const own = { PORTICO_QUEUE_DATABASE_URL: PORTICO_DATABASE_URL, PORTICO_RABBITMQ_URL };
    expect(served(own).on).toEqual(['queue']);
  });

  it('is a mistake when one of its addresses is there, or when it is switched on', () => {
    const { ...tokens } = TOKEN_VARIABLES;
    expect(problemsOf({}, { ...tokens, PORTICO_RABBITMQ_URL })).toEqual([
      'configuration: queue.databaseUrl: no address of postgres; set it here or by PORTICO_DATABASE_URL, or leave the service out (PORTICO_QUEUE_ENABLED=false)',
    ]);
    expect(problemsOf({ queue: { databaseUrl: PORTICO_DATABASE_URL } }, tokens)).toEqual([
      expect.stringMatching(/queue\.rabbitmqUrl: no address of rabbitmq/),
    ]);
    const databases = [{ url: PORTICO_REDIS_URL }, { name: 'b', path: '/b', token: 'b' }];
    expect(problemsOf({ kv: { databases } }, tokens)).toEqual([
      expect.stringMatching(/kv\.databases\[1\]\.url: no address of redis; .*PORTICO_KV_DATABASES_1_URL/),
    ]);
    expect(problemsOf({ vector: { enabled: true } }, { ...tokens, PORTICO_REDIS_URL })).toEqual([
      expect.stringMatching(/vector\.database\.url: no address of postgres/),
    ]);
  });

  it('is a mistake when it is every one', () => {
    expect(problemsOf({}, {})).toEqual([
      expect.stringMatching(
        /no service has the address of its backend; .*PORTICO_REDIS_URL.* for kv, .*for queue/,
      ),
    ]);
    const off = Object.fromEntries(services.map(({ name }) => [name, { enabled: false }]));
    expect(problemsOf(off, {})).toEqual([]);
  });

  it('is wanted by the start scripts, which bring the backend', () => {
    const report = checkReport(loadConfig({ environment: { PORTICO_REDIS_URL } }, false));
    expect(report).toMatchObject({
      services: services.map(({ name }) => name),
      backends: { redis: 'given', postgres: 'needed', kafka: 'needed', rabbitmq: 'needed' },
    });
    expect(report.unserved.map(({ service }) => service)).toEqual(
      services.map(({ name }) => name).filter((name) => name !== 'kv'),
    );
  });
});

it('tells the start scripts every port that it will listen on', () => {
  const environment = {
    PORTICO_REDIS_URL: 'redis://127.0.0.1:6379',
    PORTICO_HTTP_OPERATIONS_PORT: '8071',
    PORTICO_KV_DATABASES_0_PORT: '8072',
  };
  expect(checkReport(loadConfig({ environment }, false)).ports).toEqual([8070, 8071, 8072]);
});

it.each([
  ['0.0.0.0', 'http://127.0.0.1:8070'],
  ['::', 'http://[::1]:8070'],
  ['::1', 'http://[::1]:8070'],
  ['192.168.1.4', 'http://192.168.1.4:8070'],
])('who listens at %s is reached at %s', (host, url) => {
  const environment = { PORTICO_HTTP_HOST: host, PORTICO_REDIS_URL: 'redis://127.0.0.1:6379' };
  expect(checkReport(loadConfig({ environment }, false))).toMatchObject({ url, operationsUrl: url });
});

describe('a reference to a variable in the file', () => {
  const reference = (name: string) => `\${${name}}`;
  const document = {
    http: { port: reference('GATEWAY_PORT'), stopTimeoutMs: 5 },
    kv: {
      databases: [
        {
          token: `prefix-${reference('MY_TOKEN')}`,
          url: `redis://:a$${reference('b')}@${reference('REDIS_HOST')}`,
        },
      ],
    },
    broker: { clusters: [{ brokers: reference('BROKERS') }] },
    queue: { enabled: reference('WITH_QUEUE') },
  };
  const variables = {
    GATEWAY_PORT: '9001',
    MY_TOKEN: 'of-the-environment',
    REDIS_HOST: 'redis.example',
    BROKERS: 'a:1,b:2',
    WITH_QUEUE: 'false',
  };

  it('has the value of the environment, of the type of its key', () => {
    const { PORTICO_KV_TOKEN: _, ...tokens } = TOKEN_VARIABLES;
    const { config } = loadConfig({ document, environment: { ...tokens, ...variables } });
    expect(config.http).toMatchObject({ port: 9001, stopTimeoutMs: 5 });
    expect(config.services).toMatchObject({
      kv: {
        databases: [{ token: 'prefix-of-the-environment', url: `redis://:a${reference('b')}@redis.example` }],
      },
      broker: { clusters: [{ brokers: ['a:1', 'b:2'] }] },
      queue: { enabled: false },
    });
  });

  it('is a mistake that names the key where the variable is not set', () => {
    const { MY_TOKEN: _, ...others } = variables;
    expect(problemsOf(document, { ...others, BROKERS: '' })).toEqual([
      expect.stringMatching(/^configuration: kv\.databases\[0\]\.token: the variable MY_TOKEN is not set/),
      expect.stringMatching(
        /^configuration: broker\.clusters\[0\]\.brokers: the variable BROKERS is not set/,
      ),
    ]);
    expect(problemsOf({ kv: { databases: [{ token: reference('MY_TOKEN:-x') }] } })).toEqual([
      expect.stringMatching(/kv\.databases\[0\]\.token: the variable MY_TOKEN:-x is not set/),
    ]);
  });
});

describe('a variable with _FILE behind its name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portico-config-'));
  const fileWith = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  afterAll(() => rmSync(folder, { recursive: true }));

  it('names a file with the value', () => {
    const { PORTICO_REDIS_URL = '', PORTICO_KV_TOKEN: _, ...others } = COMPLETE as Record<string, string>;
    const { config, warnings } = loadConfig({
      document: { kv: { databases: [{}, { name: 'b', path: '/b' }] } },
      environment: {
        ...others,
        PORTICO_REDIS_URL_FILE: fileWith('url', `${PORTICO_REDIS_URL}\n`),
        PORTICO_KV_TOKEN_FILE: fileWith('token', 'a-token-from-a-file'),
        PORTICO_KV_DATABASES_1_URL: 'redis://b',
        PORTICO_KV_DATABASES_1_TOKEN_FILE: fileWith('second', 'another-token-from-a-file\r\n'),
      },
    });
    expect(warnings).toEqual([]);
    expect(config.services.kv).toMatchObject({
      databases: [
        { url: PORTICO_REDIS_URL, token: 'a-token-from-a-file' },
        { token: 'another-token-from-a-file' },
      ],
    });
  });

  it('is a mistake when the file cannot be read, or the variable is there as well', () => {
    const { PORTICO_KV_TOKEN: _, ...others } = COMPLETE as Record<string, string>;
    expect(problemsOf({}, { ...others, PORTICO_KV_TOKEN_FILE: '/nowhere/token' })).toEqual([
      'PORTICO_KV_TOKEN_FILE: the file cannot be read (ENOENT)',
    ]);
    expect(problemsOf({}, { ...COMPLETE, PORTICO_KV_TOKEN_FILE: fileWith('twice', 'x') })).toEqual([
      'PORTICO_KV_TOKEN_FILE: PORTICO_KV_TOKEN is set as well',
    ]);
    const blank = { ...others, PORTICO_KV_TOKEN_FILE: fileWith('blank', 'hunter2 has a blank') };
    expect(problemsOf({}, blank)).toEqual([
      expect.stringMatching(/^PORTICO_KV_TOKEN_FILE: kv\.databases\[0\]\.token: expected 1 to 512/),
    ]);
    const unknown = { ...COMPLETE, PORTICO_KV_TOKN_FILE: '/nowhere' };
    expect(loadConfig({ environment: unknown }).warnings).toHaveLength(1);
  });
});

it('refuses TLS files beside an address without TLS, which nobody would look at', () => {
  const ca = process.execPath.replace(/node$/, 'none.pem');
  const kv = (database: Record<string, unknown>) =>
    problemsOf({ kv: { databases: [database] } }, { ...COMPLETE, PORTICO_REDIS_URL: '' });
  const unread = expect.stringMatching(/kv\.databases\[0\]\.tls\.ca: the file cannot be read/);
  expect(kv({ url: 'rediss://a', tls: { ca } })).toEqual([unread]);
  const broker = (tls: Record<string, unknown>, sasl = {}) =>
    problemsOf({ broker: { clusters: [{ tls, sasl }] } });
  expect(broker({ enabled: true, ca })).toEqual([
    expect.stringMatching(/broker\.clusters\[0\]\.tls\.ca: the file cannot be read/),
  ]);
  expect(broker({ ca })).toEqual([
    expect.stringMatching(/broker\.clusters\[0\]\.tls\.ca: .*expected enabled: true/),
  ]);
  expect(broker({}, { username: 'a', password: 'b' })).toEqual([
    expect.stringMatching(/broker\.clusters\[0\]\.sasl: expected a mechanism/),
  ]);
});

it('takes origins as a list, or as one variable with commas', () => {
  const origins = ['https://app.example', 'http://localhost:3000', 'capacitor://localhost', '*'];
  const variable = { ...COMPLETE, PORTICO_HTTP_CORS_ORIGINS: origins.join(', ') };
  expect(loadConfig({ environment: variable }).config.http.cors.origins).toEqual(origins);
  const wrong = [
    'https://app.example/',
    'https://app.example:443',
    'app.example',
    'https://*.example',
    'null',
  ];
  const problems = problemsOf({ http: { cors: { origins: [...origins, ...wrong] } } });
  expect(problems).toHaveLength(wrong.length);
  for (const [i, problem] of problems.entries())
    expect(problem).toMatch(
      new RegExp(`http\\.cors\\.origins\\[${i + origins.length}\\]: expected an origin`),
    );
});

it('is frozen', () => {
  const { config } = loadConfig({ document: {}, environment: COMPLETE });
  expect(() => {
    (config.http as { port: number }).port = 1;
  }).toThrow(TypeError);
});
