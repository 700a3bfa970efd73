import { connect, type Socket } from 'node:net';
import { HANGS_MS } from './eventually.js';

/** What has come is looked through again when such a part of it was added, less so many characters, or none for so many ms. */
const [LOOK_SHARE, LOOK_AT, LOOK_MS] = [0.1, 64 * 1024, 20] as const;

/** A TCP connection on which a test writes HTTP by hand and reads what comes back. */
export class RawClient {
  private received = '';
  private ended = false;
  private readonly waiters = new Set<() => void>();

  private constructor(readonly socket: Socket) {
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      this.received += chunk;
      this.wake();
    });
    socket.on('close', () => {
      this.ended = true;
      this.wake();
    });
    // a reset is an end as well; what was received until then is what counts
    socket.on('error', () => undefined);
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawClient(socket);
  }

  write(text: string): void {
    this.socket.write(text, 'latin1');
  }

  /** Everything received once `pattern` matches it, or the connection is closed. @throws when neither comes */
  until(pattern: RegExp): Promise<string> {
    return this.untilIt((text) => pattern.test(text), pattern);
  }

  /** The same for `count` replies whose bodies end with `end`. */
  untilReplies(count: number, end: string): Promise<string> {
    return this.untilIt((text) => text.endsWith(end) && text.split('HTTP/1.1 ').length > count, end);
  }

  /** Resolves when the server has closed the connection. */
  closed(): Promise<string> {
    return this.untilIt(() => false, 'end');
  }

  private async untilIt(isIt: (text: string) => boolean, what: unknown): Promise<string> {
    const end = performance.now() + HANGS_MS;
    while (!isIt(this.received) && !this.ended) {
      const left = end - performance.now();
      if (left <= 0) throw new Error(`no ${what} within ${HANGS_MS} ms in: ${this.received}`);
      const enough = this.received.length + Math.max(1, this.received.length * LOOK_SHARE - LOOK_AT);
      await this.change(left);
      while (this.received.length < enough && !this.ended && (await this.change(LOOK_MS)));
    }
    return this.received;
  }

  end(): void {
    this.socket.destroy();
  }

  /** @returns whether anything has come within `ms` */
  private change(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (hasCome: boolean) => {
        clearTimeout(timer);
        this.waiters.delete(come);
        resolve(hasCome);
      };
      const come = () => done(true);
      const timer = setTimeout(() => done(false), ms);
      this.waiters.add(come);
    });
  }

  private wake(): void {
    for (const waiter of this.waiters) waiter();
  }
}
