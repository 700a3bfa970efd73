import { execFile } from 'node:child_process';

type Environment = Readonly<Record<string, string | undefined>>;

/** A message that has not gone out by then never will, in ms. */
const MESSAGE_MS = 5_000;
/** So many signs of life are sent in the time that systemd waits for one. */
const SIGNS = 3;

/**
 * What systemd is told of a service of `Type=notify`. Node has no datagram sockets of Unix, so each message goes out through
 * systemd's own `systemd-notify`; the unit has to take messages of a service's children (`NotifyAccess=all`).
 */
export class ServiceManager {
  private last: Promise<void> = Promise.resolve();
  private waiting = 0;
  private watchdog: NodeJS.Timeout | undefined;

  private constructor(
    private readonly environment: Environment,
    /** Of the watchdog; 0: none. */
    private readonly everyMs: number,
  ) {}

  /** @returns `undefined` where nobody wants to be told @param pid of this process */
  static of(environment: Environment, pid: number): ServiceManager | undefined {
    const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: timeout, WATCHDOG_PID: watched } = environment;
    if (socket === undefined || socket === '') return undefined;
    const isWatched = watched === undefined || watched === String(pid);
    const everyMs = isWatched ? Math.floor(Number(timeout ?? 0) / 1_000 / SIGNS) : 0;
    return new ServiceManager(environment, everyMs > 0 ? everyMs : 0);
  }

  /** Requests are accepted. From now on signs of life are sent: an event loop that stands still sends none. */
  ready(): void {
    this.tell('READY=1');
    if (this.everyMs === 0) return;
    this.watchdog = setInterval(() => {
      // on a starved machine one is still on its way
      if (this.waiting === 0) this.tell('WATCHDOG=1');
    }, this.everyMs);
    this.watchdog.unref();
  }

  /** Resolves when it is told. */
  stopping(): Promise<void> {
    clearInterval(this.watchdog);
    this.tell('STOPPING=1');
    return this.last;
  }

  /** In order; one that cannot be told is lost, and systemd notices by itself. */
  private tell(message: string): void {
    this.waiting += 1;
    this.last = this.last.then(
      () =>
        new Promise((resolve) => {
          const options = { env: this.environment as NodeJS.ProcessEnv, timeout: MESSAGE_MS };
          execFile('systemd-notify', [message], options, () => {
            this.waiting -= 1;
            resolve();
          });
        }),
    );
  }
}
