import cluster, { type Worker } from 'node:cluster';
import type { Config } from '../config/schema.js';
import type { Step } from '../console/series/request-series.js';
import type { Listening } from '../gateway.js';
import { HttpError } from '../http/errors.js';
import type { MetricsSnapshot } from '../http/monitoring/metrics.js';
import type { Worker as WorkerPlace } from '../services/service.js';
import { type ToPrimary, type ToWorker, WORKER_VARIABLE } from './messages.js';

/** Longest wait for the metrics of the other workers, in ms; the primary process waits less for each. */
const GATHER_MS = 3_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** What a worker does when the primary process says so. */
export interface WorkerDuties {
  /** @param lost the primary process is gone, and with it the ports */
  stop(lost: boolean): void;
  metrics(): Promise<MetricsSnapshot>;
  reload(config: Config): void;
  /** For the console. */
  steps(): readonly Step[];
}

/** What a worker begins with. */
export interface Orders {
  readonly config: Config;
  readonly place: WorkerPlace;
}

/** A worker's line to the primary one. */
export class WorkerLink {
  private duties: WorkerDuties | undefined;
  private reloadFirst: Config | undefined;
  private stopFirst: { lost: boolean } | undefined;
  private lastId = 0;
  private readonly gathering = new Map<number, (parts: never) => void>();
  private begun: ((orders: Orders) => void) | undefined;

  constructor(
    private readonly worker: Worker,
    /** From 1; a replacement gets the number of the worker that it replaces. */
    readonly number: number,
  ) {
    worker.on('message', (message: ToWorker) => this.received(message));
    // a send that fails is followed by the disconnect
    worker.on('error', () => undefined);
    worker.on('disconnect', () => {
      // Node would end the process at once; requests in flight get their time
      worker.exitedAfterDisconnect = true;
      this.stop(true);
    });
  }

  /** Resolves to the configuration, which the primary process has read and checked for all, and to this worker's place. */
  begin(): Promise<Orders> {
    return new Promise((resolve) => {
      this.begun = resolve;
      void this.send({ type: 'hello' });
    });
  }

  /** From now the primary process is obeyed; what it said before is made good. */
  take(duties: WorkerDuties): void {
    this.duties = duties;
    if (this.reloadFirst !== undefined) duties.reload(this.reloadFirst);
    if (this.stopFirst !== undefined) duties.stop(this.stopFirst.lost);
  }

  /** Resolves when it is sent, or cannot be. */
  listening(about: Listening): Promise<void> {
    return this.send({ type: 'listening', about });
  }

  failed(error: unknown): Promise<void> {
    return this.send({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  }

  sendFinal(snapshot: MetricsSnapshot): Promise<void> {
    return this.send({ type: 'final', snapshot });
  }

  /**
   * The metrics of all workers, and of those that are gone what counts on.
   * @throws HttpError `timeout` when the primary process does not answer
   */
  gather(): Promise<readonly MetricsSnapshot[]> {
    return this.gatherAs('gather');
  }

  /** What each worker noted for the console. @throws as `gather` */
  gatherSteps(): Promise<readonly (readonly Step[])[]> {
    return this.gatherAs('gatherSteps');
  }

  private gatherAs<Parts>(type: 'gather' | 'gatherSteps'): Promise<Parts> {
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.gathering.delete(id);
        reject(new HttpError('timeout', 'The other processes did not answer in time.'));
      }, GATHER_MS);
      this.gathering.set(id, (parts) => {
        clearTimeout(timer);
        this.gathering.delete(id);
        resolve(parts);
      });
      void this.send({ type, id });
    });
  }

  private received(message: ToWorker): void {
    if (message.type === 'begin') this.begun?.(message);
    else if (message.type === 'stop') this.stop(false);
    else if (message.type === 'reload') this.reload(message.config);
    else if (message.type === 'gathered') this.gathering.get(message.id)?.(message.snapshots as never);
    else if (message.type === 'gatheredSteps') this.gathering.get(message.id)?.(message.steps as never);
    else if (message.type === 'collectSteps') this.reportSteps(message.id);
    else void this.report(message.id);
  }

  private reportSteps(id: number): void {
    if (this.duties !== undefined) void this.send({ type: 'collectedSteps', id, steps: this.duties.steps() });
  }

  private async report(id: number): Promise<void> {
    if (this.duties === undefined) return;
    await this.send({ type: 'collected', id, snapshot: await this.duties.metrics() });
  }

  private reload(config: Config): void {
    if (this.duties === undefined) this.reloadFirst = config;
    else this.duties.reload(config);
  }

  private stop(lost: boolean): void {
    this.stopFirst ??= { lost };
    this.duties?.stop(lost);
  }

  private send(message: ToPrimary): Promise<void> {
    return new Promise((resolve) => {
      if (!this.worker.isConnected()) resolve();
      else this.worker.send(message, () => resolve());
    });
  }
}

/** The line to the primary process; `undefined` in a process that is no worker of ours. */
export function workerLink(environment: Environment): WorkerLink | undefined {
  const number = environment[WORKER_VARIABLE];
  const { worker } = cluster;
  return number === undefined || worker === undefined ? undefined : new WorkerLink(worker, Number(number));
}
