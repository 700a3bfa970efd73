import { connect, type Socket } from 'node:net';
import { HANGS_MS } from './eventually.js';

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
  async until(pattern: RegExp): Promise<string> {
    const end = performance.now() + HANGS_MS;
    while (!pattern.test(this.received) && !this.ended) {
      const left = end - performance.now();
      if (left <= 0) throw new Error(`no ${pattern} within ${HANGS_MS} ms in: ${this.received}`);
      await this.change(left);
    }
    return this.received;
  }

  /** Resolves when the server has closed the connection. */
  async closed(): Promise<string> {
    const all = await this.until(/(?!)/);
    return all;
  }

  end(): void {
    this.socket.destroy();
  }

  private change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.waiters.add(done);
    });
  }

  private wake(): void {
    for (const waiter of this.waiters) waiter();
  }
}
