import { claimed, type KeptCall, type KeptCalls } from './kept-calls.js';

/** Sends one command. @throws whatever it is refused with */
export type SendCommand = (command: readonly string[]) => Promise<unknown>;

/** Each call is one key, which ends by itself. */
export class RedisKeptCalls implements KeptCalls {
  constructor(
    private readonly prefix: string,
    private readonly send: SendCommand,
  ) {}

  claim(id: string, call: KeptCall, windowMs: number): Promise<KeptCall | undefined> {
    const key = this.prefix + id;
    return claimed(
      async () =>
        (await this.send(['SET', key, JSON.stringify(call), 'PX', String(windowMs), 'NX'])) !== null,
      async () => {
        const text = await this.send(['GET', key]);
        return text === null ? undefined : (JSON.parse(String(text)) as KeptCall);
      },
    );
  }

  async finish(id: string, call: KeptCall): Promise<void> {
    await this.send(['SET', this.prefix + id, JSON.stringify(call), 'XX', 'KEEPTTL']);
  }

  async release(id: string): Promise<void> {
    await this.send(['DEL', this.prefix + id]);
  }
}
