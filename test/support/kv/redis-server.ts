import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type Certificates, makeCertificates } from '../certificates.js';
import { HANGS_MS } from '../eventually.js';
import { freePort } from '../free-port.js';
import {
  configurationOf,
  type RedisOptions,
  type RedisProgram,
  socketOf,
  writeConfiguration,
} from './redis-configuration.js';

/** How long a polite stop may take, in ms. */
const STOP_MS = 20_000;
const PORT_ATTEMPTS = 5;

/** By what a server, and a Sentinel, says in its log that it listens. Another program on its port could answer a PING. */
const LISTENS = /Ready to accept connections|Sentinel ID is/;

function programFile(program: RedisProgram): string {
  const variable = `PORTICO_TEST_REDIS_${program.toUpperCase()}`;
  const file = process.env[variable];
  if (file === undefined || file === '')
    throw new Error(
      `${variable} is not set: use npm test, or what compose/backends.mjs env prints; 'system' is an older one`,
    );
  return file;
}

/**
 * A real Redis or Sentinel of a test's own, on a free port of 127.0.0.1, with its files in a temporary folder. It
 * carries the mark of the test run, by which the leak check finds one that was not stopped.
 */
export class RedisServer {
  private child: ChildProcess | undefined;
  private direct: Redis | undefined;

  private constructor(
    readonly port: number,
    /** Holds data, configuration and log; gone after `stop`. */
    readonly folder: string,
    readonly options: RedisOptions,
    readonly certificates: Certificates | undefined,
    private readonly sentinel: boolean,
  ) {}

  /** @throws with the end of its log when it does not start */
  static async start(options: RedisOptions, sentinel = false): Promise<RedisServer> {
    for (let attempt = 1; ; attempt++) {
      const folder = await mkdtemp(join(tmpdir(), 'portico-test-redis-'));
      const fresh = options.tls !== undefined && options.certificates === undefined;
      const certificates = fresh ? await makeCertificates(join(folder, 'tls')) : options.certificates;
      const server = new RedisServer(await freePort(), folder, options, certificates, sentinel);
      try {
        await writeConfiguration(server.place, options);
        await server.start();
        return server;
      } catch (error) {
        await server.stop();
        // between the look at the port and Redis' own, another program may have taken it
        if (attempt === PORT_ATTEMPTS || !/address already in use/i.test((error as Error).message))
          throw error;
      }
    }
  }

  /** With the password of `default`, if there is one. */
  get url(): string {
    const { password, tls } = this.options;
    const login = password === undefined ? '' : `default:${encodeURIComponent(password)}@`;
    return `${tls === undefined ? 'redis' : 'rediss'}://${login}127.0.0.1:${this.port}`;
  }

  /** Only there with `unixSocket`. */
  get socketPath(): string {
    return socketOf(this.folder);
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('it does not run');
    return this.child.pid;
  }

  /** Starts it again after `kill`, on the same port and files; resolves when it listens. */
  async start(): Promise<void> {
    const logFile = join(this.folder, 'redis.log');
    const log = openSync(logFile, 'a');
    const { size } = await stat(logFile);
    const args = [configurationOf(this.folder), ...(this.sentinel ? ['--sentinel'] : [])];
    try {
      // not detached: whoever ends the test run's process group ends it too
      const child = spawn(programFile(this.options.program ?? 'newest'), args, {
        cwd: this.folder,
        env: environment(),
        stdio: ['ignore', log, log],
      });
      await once(child, 'spawn');
      this.child = child;
    } finally {
      closeSync(log);
    }
    await this.listens(async () => (await readFile(logFile)).subarray(size).toString());
  }

  /** Sends a command past Portico, as `default`. @throws Redis' error, or after a minute and a half without an answer */
  command(name: string, ...args: (string | number)[]): Promise<unknown> {
    this.direct ??= this.connect();
    return this.direct.call(name, ...args);
  }

  /** SIGKILL; resolves when it is gone. Its files stay. */
  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  /** SIGSTOP: it keeps its connections and answers nothing. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Ends it for good and removes its folder; may be called in any state, and again. */
  async stop(): Promise<void> {
    this.direct?.disconnect();
    this.direct = undefined;
    await this.end('SIGTERM');
    await rm(this.folder, { recursive: true, force: true });
  }

  private get place() {
    const { port, folder, certificates, sentinel } = this;
    return { port, folder, certificates, sentinel };
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (child === undefined || hasEnded(child)) return;
    const exited = once(child, 'exit');
    child.kill('SIGCONT');
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await exited;
    clearTimeout(timer);
  }

  private async listens(words: () => Promise<string>): Promise<void> {
    const { child } = this;
    const end = performance.now() + HANGS_MS;
    for (;;) {
      const ended = child === undefined || hasEnded(child);
      const log = await words();
      if (!ended && LISTENS.test(log)) return;
      if (ended || performance.now() > end) throw new Error(`Redis does not start: ${log.slice(-2_000)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  private connect(): Redis {
    const { password, tls } = this.options;
    const { certificates } = this;
    const client = new Redis({
      host: '127.0.0.1',
      port: this.port,
      ...(password === undefined ? {} : { password }),
      ...(tls === undefined || certificates === undefined ? {} : { tls: tlsOptions(certificates) }),
      protocol: 2,
      enableReadyCheck: false,
      retryStrategy: () => 20,
      maxRetriesPerRequest: 10,
      commandTimeout: HANGS_MS,
    });
    // the command that fails says it
    client.on('error', () => undefined);
    return client;
  }
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

function tlsOptions({ ca, clientCert, clientKey }: Certificates) {
  return { ca: readFileSync(ca), cert: readFileSync(clientCert), key: readFileSync(clientKey) };
}

/** The variables that a program needs, and the marks of the test run. */
function environment(): Record<string, string> {
  const wanted = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[0] === 'PATH' || entry[0].startsWith('PORTICO_TEST_'),
  );
  return Object.fromEntries(wanted);
}

/** Starts a Redis; without options the newest, without TLS or password. It writes no data to disk unless `config` says so. */
export function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return RedisServer.start(options);
}
