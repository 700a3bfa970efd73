export type CloseReason = 'idle' | 'asked' | 'stop';

export interface IdleRegistryOptions<Value> {
  /** A value that nobody holds for so long is closed, in ms. */
  idleMs: number;
  /** Gives a value back. Its key can be used again only when this has ended. */
  close: (value: Value, reason: CloseReason) => Promise<void>;
}

/** A value in use: it does not expire until released. */
export interface Hold<Value> {
  readonly value: Value;
  /** The idle time begins anew when the last holder releases. Calling it again does nothing. */
  release(): void;
}

interface Entry<Value> {
  readonly value: Promise<Value>;
  ready: Value | undefined;
  holders: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Values made on first use and closed when idle. Making one is shared by all who ask meanwhile; one that could not be
 * made leaves nothing behind.
 */
export class IdleRegistry<Value> {
  private readonly entries = new Map<string, Entry<Value>>();
  private readonly closing = new Map<string, Promise<void>>();
  private stopped = false;

  constructor(private readonly options: IdleRegistryOptions<Value>) {}

  /** Values there are or that are being made. */
  get size(): number {
    return this.entries.size;
  }

  /** Of values there are or that are being made. */
  keys(): Iterable<string> {
    return this.entries.keys();
  }

  /** Those that are made. */
  values(): Value[] {
    return [...this.entries.values()].flatMap(({ ready }) => (ready === undefined ? [] : [ready]));
  }

  has(key: string): boolean {
    return this.entries.has(key);
  }

  /** The value of `key` as it is, not held; `undefined` where none is made. */
  made(key: string): Value | undefined {
    return this.entries.get(key)?.ready;
  }

  /** Resolves when a value of `key` that is being closed is gone. */
  async closed(key: string): Promise<void> {
    await this.closing.get(key);
  }

  /** The value of `key`, made by `create` when there is none; held until released. @throws what `create` throws */
  async hold(key: string, create: () => Promise<Value>): Promise<Hold<Value>> {
    for (let ending = this.closing.get(key); ending !== undefined; ending = this.closing.get(key))
      await ending;
    if (this.stopped) throw new Error('the registry is closed');
    const entry = this.entries.get(key) ?? this.make(key, create);
    entry.holders++;
    clearTimeout(entry.timer);
    const value = await entry.value;
    let released = false;
    return {
      value,
      release: () => {
        if (released) return;
        released = true;
        if (--entry.holders === 0 && this.entries.get(key) === entry) this.expireLater(key, entry);
      },
    };
  }

  /** Closes a value whether it is held or not. Resolves to false when there is none. */
  async close(key: string): Promise<boolean> {
    const entry = this.entries.get(key);
    if (entry === undefined) return false;
    await this.end(key, entry, 'asked');
    return true;
  }

  /** Closes everything; nothing can be made any more. */
  async closeAll(): Promise<void> {
    this.stopped = true;
    for (const [key, entry] of [...this.entries]) void this.end(key, entry, 'stop');
    await Promise.all(this.closing.values());
  }

  private make(key: string, create: () => Promise<Value>): Entry<Value> {
    const entry: Entry<Value> = { value: create(), ready: undefined, holders: 0, timer: undefined };
    this.entries.set(key, entry);
    entry.value.then(
      (value) => {
        entry.ready = value;
      },
      () => {
        if (this.entries.get(key) === entry) this.entries.delete(key);
      },
    );
    return entry;
  }

  private expireLater(key: string, entry: Entry<Value>): void {
    entry.timer = setTimeout(() => void this.end(key, entry, 'idle'), this.options.idleMs);
    entry.timer.unref();
  }

  private end(key: string, entry: Entry<Value>, reason: CloseReason): Promise<void> {
    clearTimeout(entry.timer);
    this.entries.delete(key);
    const ending = entry.value
      .then((value) => this.options.close(value, reason))
      .catch(() => {})
      .finally(() => {
        if (this.closing.get(key) === ending) this.closing.delete(key);
      });
    this.closing.set(key, ending);
    return ending;
  }
}
