import { randomUUID } from 'node:crypto';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Where sealed credentials wait for the one who has their code. */
export interface CodePlace {
  /** @returns false where there is no room for another */
  put(name: string, sealed: Buffer): Promise<boolean>;
  /** What was put under this name, once. */
  take(name: string): Promise<Buffer | undefined>;
}

/** Links that wait at once, far more than people open. */
const MOST = 100;

export class MemoryPlace implements CodePlace {
  private readonly waiting = new Map<string, { readonly sealed: Buffer; readonly until: number }>();

  constructor(
    private readonly lifetimeMs: number,
    private readonly now: () => number,
  ) {}

  async put(name: string, sealed: Buffer): Promise<boolean> {
    const now = this.now();
    for (const [other, { until }] of this.waiting) if (until <= now) this.waiting.delete(other);
    if (this.waiting.size >= MOST) return false;
    this.waiting.set(name, { sealed, until: now + this.lifetimeMs });
    return true;
  }

  async take(name: string): Promise<Buffer | undefined> {
    const found = this.waiting.get(name);
    this.waiting.delete(name);
    return found?.sealed;
  }
}

const PREFIX = 'sign-in-';

/** For several processes: a folder that they share. Only one of them can give a file another name, so a code is taken once. */
export class FolderPlace implements CodePlace {
  constructor(
    private readonly folder: string,
    private readonly lifetimeMs: number,
    private readonly now: () => number,
  ) {}

  async put(name: string, sealed: Buffer): Promise<boolean> {
    if ((await this.removeLate()) >= MOST) return false;
    await writeFile(join(this.folder, PREFIX + name), sealed, { mode: 0o600, flag: 'wx' });
    return true;
  }

  async take(name: string): Promise<Buffer | undefined> {
    const mine = join(this.folder, `taken-${randomUUID()}`);
    try {
      await rename(join(this.folder, PREFIX + name), mine);
      return await readFile(mine);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    } finally {
      await rm(mine, { force: true });
    }
  }

  /** @returns how many wait still */
  private async removeLate(): Promise<number> {
    const names = (await readdir(this.folder)).filter((name) => name.startsWith(PREFIX));
    let left = 0;
    for (const name of names) {
      const path = join(this.folder, name);
      const at = await stat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      );
      if (at + this.lifetimeMs > this.now()) left += 1;
      else await rm(path, { force: true });
    }
    return left;
  }
}
