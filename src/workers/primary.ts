import cluster, { type Worker } from 'node:cluster';
import { type AddressInfo, createServer } from 'node:net';
import type { Config } from '../config/schema.js';
import type { Step } from '../console/series/request-series.js';
import type { Listening } from '../gateway.js';
import { backoffDelay } from '../lib/backoff.js';
import type { Logger } from '../lib/logger.js';
import { Collector } from './collector.js';
import { type ToPrimary, type ToWorker, WORKER_VARIABLE } from './messages.js';
import { MetricsCollector } from './metrics-collector.js';
import { PeerWorkers } from './peer-workers.js';

/** A worker that listened for so long, in ms, was no part of a series of deaths. */
const STABLE_MS = 10_000;
/** Beyond `http.stopTimeoutMs`, so long may the workers take to give their backends back, in ms. */
const RELEASE_MS = 30_000;

/** One of the processes, whoever fills the place at the moment. */
interface Place {
  readonly number: number;
  worker: Worker | undefined;
  listening: Listening | undefined;
  startedAt: number;
  /** How many workers in turn died soon. */
  deaths: number;
  revival: NodeJS.Timeout | undefined;
}

export interface PrimaryHooks {
  /** Ends the program. */
  exit(code: number): void;
  /** Every worker listens, for the first time. */
  listening(): void;
  /** Says why there is no gateway. */
  complain(text: string): void;
}

/** The process that serves nothing: it opens the ports, starts the workers, replaces those that die and ends them. */
export class Primary {
  private readonly places: Place[];
  private readonly metrics = new MetricsCollector((number, id) =>
    this.send(this.places[number - 1]?.worker, { type: 'collect', id }),
  );
  private readonly steps = new Collector<readonly Step[]>((number, id) =>
    this.send(this.places[number - 1]?.worker, { type: 'collectSteps', id }),
  );
  private announced = false;
  private stopping = false;
  private exitCode = 0;
  private readonly peers: PeerWorkers;
  /** The configuration that the workers get. */
  private workerConfig: Config;

  constructor(
    private readonly config: Config,
    private readonly log: Logger,
    private readonly hooks: PrimaryHooks,
  ) {
    this.workerConfig = config;
    this.peers = new PeerWorkers(config.http.workers);
    this.places = Array.from({ length: config.http.workers }, (_, i) => ({
      number: i + 1,
      worker: undefined,
      listening: undefined,
      startedAt: 0,
      deaths: 0,
      revival: undefined,
    }));
  }

  /** @throws when the host has no such address */
  async start(): Promise<void> {
    const { host, port } = this.config.http;
    // chosen once, so that replacements find it again even when no worker is left
    if (port === 0) {
      this.workerConfig = { ...this.config, http: { ...this.config.http, port: await freePort(host) } };
    }
    // Node's own turns lose connections that were on their way to a worker that dies: they hang until the client gives up
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // JSON, the default, has no NaN, which metrics may be
    cluster.setupPrimary({ serialization: 'advanced' });
    for (const place of this.places) this.fork(place);
  }

  /** Lets every worker end its requests; the process ends with the last. */
  stop(): void {
    if (this.stopping) return;
    this.stopping = true;
    for (const { worker, revival } of this.places) {
      clearTimeout(revival);
      this.send(worker, { type: 'stop' });
    }
    setTimeout(() => {
      this.exitCode = 1;
      this.killAll();
    }, this.config.http.stopTimeoutMs + RELEASE_MS);
    this.exitWhenEmpty();
  }

  /** The configuration was read again: workers that are started later have it, too. */
  reload(config: Config): void {
    const { port } = this.workerConfig.http;
    this.workerConfig = { ...config, http: { ...config.http, port } };
    for (const { worker } of this.places) this.send(worker, { type: 'reload', config: this.workerConfig });
  }

  /** At once, whatever they are doing. */
  killAll(): void {
    this.peers.clearUp();
    for (const { worker } of this.places) worker?.kill('SIGKILL');
  }

  private fork(place: Place): void {
    const worker = cluster.fork({ [WORKER_VARIABLE]: String(place.number) });
    place.worker = worker;
    place.startedAt = performance.now();
    worker.on('message', (message: ToPrimary) => this.received(place, worker, message));
    worker.on('exit', (code, signal) => {
      // its last words may still be on their way
      if (worker.isConnected()) worker.once('disconnect', () => this.ended(place, code, signal));
      else this.ended(place, code, signal);
    });
    // a send to a worker that has just died; its exit follows
    worker.on('error', (error) => this.log.debug({ err: error, worker: place.number }, 'worker not reached'));
  }

  private received(place: Place, worker: Worker, message: ToPrimary): void {
    switch (message.type) {
      case 'hello':
        this.send(worker, {
          type: 'begin',
          config: this.workerConfig,
          place: this.peers.placeOf(place.number),
        });
        if (this.stopping) this.send(worker, { type: 'stop' });
        return;
      case 'listening':
        place.listening = message.about;
        this.announce(message.about);
        return;
      case 'failed':
        if (this.announced)
          this.log.error({ worker: place.number, reason: message.message }, 'worker cannot start');
        else this.abort(message.message);
        return;
      case 'collected':
        this.metrics.reported(place.number, message.id, message.snapshot);
        return;
      case 'final':
        this.metrics.final(place.number, message.snapshot);
        return;
      case 'gather':
        void this.gather(worker, message.id);
        return;
      case 'collectedSteps':
        this.steps.reported(place.number, message.id, message.steps);
        return;
      case 'gatherSteps':
        void this.gatherSteps(worker, message.id);
    }
  }

  private async gather(worker: Worker, id: number): Promise<void> {
    const snapshots = await this.metrics.collect(this.listening());
    this.send(worker, { type: 'gathered', id, snapshots });
  }

  private async gatherSteps(worker: Worker, id: number): Promise<void> {
    const steps = await this.steps.collect(this.listening());
    this.send(worker, { type: 'gatheredSteps', id, steps });
  }

  /** The numbers of the workers that serve. */
  private listening(): number[] {
    return this.places.filter(({ listening }) => listening !== undefined).map(({ number }) => number);
  }

  /** The one line that says the gateway listens, when every worker does. */
  private announce({ port, instances }: Listening): void {
    if (this.announced || this.places.some(({ listening }) => listening === undefined)) return;
    this.announced = true;
    const { host, workers } = this.config.http;
    this.log.info({ host, port, instances, workers }, 'listening');
    this.hooks.listening();
  }

  private ended(place: Place, code: number, signal: string | null): void {
    place.worker = undefined;
    place.listening = undefined;
    this.metrics.gone(place.number);
    this.steps.gone(place.number);
    if (this.stopping) {
      if (code !== 0) this.exitCode = 1;
      this.exitWhenEmpty();
    } else if (this.announced) this.replace(place, code, signal);
    else this.abort(`worker ${place.number} ended (${signal ?? code}) before it listened`);
  }

  private replace(place: Place, code: number, signal: string | null): void {
    if (performance.now() - place.startedAt > STABLE_MS) place.deaths = 0;
    const pauseMs = backoffDelay(place.deaths);
    place.deaths += 1;
    const level = code === 0 ? 'info' : 'error';
    this.log[level]({ worker: place.number, code, signal, pauseMs }, 'worker ended, starting another');
    place.revival = setTimeout(() => this.fork(place), pauseMs);
  }

  /** What keeps one worker from starting will keep the next. */
  private abort(reason: string): void {
    if (this.stopping) return;
    this.stopping = true;
    this.exitCode = 1;
    this.hooks.complain(reason);
    this.killAll();
    this.exitWhenEmpty();
  }

  private exitWhenEmpty(): void {
    if (!this.places.every(({ worker }) => worker === undefined)) return;
    this.peers.clearUp();
    this.hooks.exit(this.exitCode);
  }

  private send(worker: Worker | undefined, message: ToWorker): void {
    if (worker?.isConnected()) worker.send(message);
  }
}

async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
