import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.js';

const run = promisify(execFile);

interface ComposeService {
  image?: string;
  build?: { context: string; dockerfile: string };
  ports?: string[];
  volumes?: string[];
  environment?: Record<string, string>;
  healthcheck?: { test: string[] };
  mem_limit?: string;
  read_only?: boolean;
}

interface ComposeFile {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
}

const text = readFileSync('compose/compose.yaml', 'utf8');
const file = parse(text, { merge: true }) as ComposeFile;
const services = Object.entries(file.services);

/** `127.0.0.1:${NAME:-default}:inner` of every service. */
const published = services.flatMap(([service, { ports = [] }]) => ports.map((port) => ({ service, port })));

/** The secrets that `node compose/secrets.mjs` makes, in a folder of this test's own. */
async function freshSecrets(): Promise<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-test-'));
  try {
    const env = { ...process.env, PORTICO_STATE_DIR: folder };
    const { stdout } = await run(process.execPath, ['compose/secrets.mjs'], { env });
    const lines = readFileSync(stdout.trim(), 'utf8')
      .split('\n')
      .filter((line) => line.includes('=') && !line.startsWith('#'));
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What compose makes of `${NAME}`, `${NAME:-default}` and `${NAME:?reason}`. */
function interpolate(value: string, variables: Record<string, string>): string {
  return value.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind, rest: string) => {
    const known = variables[name];
    if (known !== undefined) return known;
    if (kind === '-') return rest;
    throw new Error(`${name} has neither a value nor a default`);
  });
}

describe('compose.yaml', () => {
  it('has the four backends and Portico, each with a health check and a bound on its memory', () => {
    expect(Object.keys(file.services).sort()).toEqual(['kafka', 'portico', 'postgres', 'rabbitmq', 'redis']);
    for (const [name, service] of services) {
      expect([name, service.healthcheck?.test.length]).toEqual([name, expect.any(Number)]);
      expect([name, service.mem_limit]).toEqual([name, expect.stringMatching(/^\d+[mg]$/)]);
    }
  });

  it('asks nothing of Docker that Engine 20.10 and the first Composes of version 2 do not have', () => {
    expect(text.replace(/^\s*#.*$/gm, '')).not.toMatch(/start_interval|^configs:|^secrets:/m);
  });

  it('pins every image to one release', () => {
    const images = services.flatMap(([, { image, build }]) => (image && !build ? [image] : []));
    const bases = [...readFileSync('compose/Dockerfile', 'utf8').matchAll(/^ARG NODE=(\S+)/gm)].map(
      (m) => m[1],
    );
    expect(images).toHaveLength(4);
    expect(bases).toHaveLength(1);
    for (const image of [...images, ...bases]) expect(image).toMatch(/^[\w/]+:\d+\.\d+\.\d+(-[\w.-]+)?$/);
  });

  it('runs a Redis that knows hash-field expiry, like the native path where one can be fetched', () => {
    expect(Number(/^redis:(\d+)\./.exec(file.services.redis?.image ?? '')?.[1])).toBeGreaterThanOrEqual(8);
  });

  it('runs the same Kafka as the native path', () => {
    const lock = JSON.parse(readFileSync('compose/native/programs/lock.json', 'utf8'));
    expect(file.services.kafka?.image).toBe(`apache/kafka:${lock.kafka.version}`);
  });

  it('publishes ports on the loopback address alone, by default those of npm start', async () => {
    const script =
      "import { profile } from './compose/state/profile.mjs'; console.log(JSON.stringify(profile('dev').ports))";
    const { PORTICO_PORT_BASE: _base, PORTICO_HTTP_PORT: _port, ...env } = process.env;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], {
      env: { ...env, PORTICO_STATE_DIR: join(tmpdir(), 'portico-test-nothing-here') },
    });
    const ports = JSON.parse(stdout) as Record<string, number>;
    const outer = published.map(({ port }) => /^127\.0\.0\.1:\$\{\w+:-(\d+)\}:\d+$/.exec(port)?.[1]);
    expect(outer.map(Number).sort()).toEqual(
      [
        ports.gateway,
        ports.redis,
        ports.postgres,
        ports.kafka,
        ports.rabbitmq,
        ports.rabbitmqManagement,
      ].sort(),
    );
  });

  it('names only files and volumes that exist', () => {
    const mounts = services.flatMap(([, { volumes = [] }]) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    );
    expect(mounts.length).toBeGreaterThanOrEqual(8);
    for (const mount of mounts) {
      if (mount.startsWith('.'))
        expect([mount, existsSync(resolve('compose', mount))]).toEqual([mount, true]);
      else expect(Object.keys(file.volumes)).toContain(mount);
    }
    const build = file.services.portico?.build;
    expect(existsSync(resolve('compose', build?.context ?? '', build?.dockerfile ?? ''))).toBe(true);
  });

  it('takes every variable from the secrets file or has a default for it', async () => {
    const secrets = await freshSecrets();
    expect(() => interpolate(text.replace(/^#.*$/gm, ''), secrets)).not.toThrow();
  });

  it('gives the gateway variables that it knows, and tokens that suffice for a public address', async () => {
    const secrets = await freshSecrets();
    const environment = Object.fromEntries(
      Object.entries(file.services.portico?.environment ?? {}).map(([name, value]) => [
        name,
        interpolate(value, secrets),
      ]),
    );
    // the image listens on every address of its container
    const { config, warnings } = loadConfig({
      environment: { ...environment, PORTICO_HTTP_HOST: '0.0.0.0' },
    });
    expect(warnings).toEqual([]);
    expect(config.http.port).toBe(8070);
    const { PORTICO_VECTOR_TOKEN: token, PORTICO_VECTOR_READONLY_TOKEN: readOnlyToken } = secrets;
    expect(token).not.toBe(readOnlyToken);
    expect(config.services.vector).toMatchObject({ indexes: [{ token, readOnlyToken }] });
  });

  it('lets Portico write nowhere and be nobody special', () => {
    expect(file.services.portico).toMatchObject({ read_only: true, cap_drop: ['ALL'], tmpfs: ['/tmp'] });
    expect(readFileSync('compose/Dockerfile', 'utf8')).toMatch(/^USER 1000:1000$/m);
  });
});

describe('Dockerfile', () => {
  it('copies only what is there and what its ignore file lets through', () => {
    const dockerfile = readFileSync('compose/Dockerfile', 'utf8');
    const ignore = readFileSync('compose/Dockerfile.dockerignore', 'utf8').split('\n');
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(?:--\S+ )*(.+) \S+$/gm)].flatMap(
      (m) => m[1]?.split(' ') ?? [],
    );
    expect(sources).toContain('src');
    for (const source of sources) {
      expect([source, existsSync(source)]).toEqual([source, true]);
      const isLetThrough = ignore.some((line) => `!${source}/`.startsWith(`${line}/`));
      expect([source, isLetThrough]).toEqual([source, true]);
    }
  });
});
