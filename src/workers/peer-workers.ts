import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from '../services/service.js';

/** By what the workers of one gateway find each other, for what only one of them can answer. */
export class PeerWorkers {
  private readonly shared: Omit<Worker, 'index'>;

  constructor(count: number) {
    this.shared = {
      machine: randomUUID(),
      count,
      // for the owner alone
      folder: mkdtempSync(join(tmpdir(), 'portico-workers-')),
      secret: randomBytes(32).toString('hex'),
    };
  }

  /** @param number of the worker, from 1 */
  placeOf(number: number): Worker {
    return { ...this.shared, index: number - 1 };
  }

  clearUp(): void {
    rmSync(this.shared.folder, { recursive: true, force: true });
  }
}
