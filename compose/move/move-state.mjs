import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/**
 * How far an import has come, in a file: whoever starts it again goes on there.
 * @typedef {object} Progress
 * @property {string} service
 * @property {string} from without its token
 * @property {string} to
 * @property {string} [match]
 * @property {any} at what is next; the service knows how it reads it
 * @property {number} moved
 * @property {string[]} failed what could not be moved, and why
 * @property {boolean} isDone
 */

export class MoveState {
  /**
   * @param {string} file
   * @param {Pick<Progress, 'service' | 'from' | 'to' | 'match'>} about
   * @throws {Error} where the file is of another import, or of one that is done
   */
  constructor(file, about) {
    this.file = file;
    /** @type {Progress} */
    this.progress = { ...about, at: undefined, moved: 0, failed: [], isDone: false };
    this.isResumed = existsSync(file);
    if (!this.isResumed) return;
    const known = JSON.parse(readFileSync(file, 'utf8'));
    for (const name of /** @type {const} */ (['service', 'from', 'to', 'match']))
      if (known[name] !== about[name])
        throw new Error(`${file} is of another import (${name}); give another --state, or delete it`);
    if (known.isDone) throw new Error(`${file} says that this import is done; delete it to begin anew`);
    this.progress = known;
  }

  /** @param {Partial<Progress>} change */
  save(change) {
    Object.assign(this.progress, change);
    writeFileSync(`${this.file}.new`, `${JSON.stringify(this.progress, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${this.file}.new`, this.file);
  }
}
