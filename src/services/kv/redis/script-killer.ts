import { type HttpError, toHttpError } from '../../../http/errors.js';
import type { RouteContext } from '../../../http/route.js';
import type { Logger } from '../../../lib/logger.js';
import { laneOfRows, type Row } from '../commands/commands.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';

/** Which of Redis' two words ends what runs: it refuses the other one. */
const KILLS: readonly Command[] = [
  ['SCRIPT', 'KILL'],
  ['FUNCTION', 'KILL'],
];
/** There is no script, or none of this kind. */
const NOTHING_TO_KILL = /^(NOTBUSY|ERR unknown)/;

export interface ScriptKillerOptions {
  /** Sends commands beside those of scripts. */
  readonly send: <T>(commands: readonly Command[], finish: (replies: RespValue[]) => T) => Promise<T>;
  readonly log: Logger;
}

/**
 * Ends scripts whose request has had no answer in time: Redis serves nobody else while one runs. It has one script at a time,
 * so of several that wait the one that runs is ended, whoever sent it.
 */
export class ScriptKiller {
  constructor(private readonly options: ScriptKillerOptions) {}

  /** Waits for `work`, which runs `rows` for a request. */
  async watch<T>(rows: readonly Row[], { signal }: RouteContext, work: Promise<T>): Promise<T> {
    if (laneOfRows(rows) !== 'scripts') return work;
    const onEnd = () => {
      if ((toHttpError(signal.reason) as HttpError).code === 'timeout') void this.kill();
    };
    signal.addEventListener('abort', onEnd, { once: true });
    try {
      return await work;
    } finally {
      signal.removeEventListener('abort', onEnd);
    }
  }

  private async kill(): Promise<void> {
    const { send, log } = this.options;
    try {
      const replies = await send(KILLS, (all) => all);
      const errors = replies.filter((reply) => reply instanceof RespError).map(({ text }) => text);
      if (errors.length < replies.length) log.warn('kv: a script that did not end in time was ended');
      const refusal = errors.find((text) => !NOTHING_TO_KILL.test(text));
      // one that has written cannot be ended (UNKILLABLE)
      if (refusal !== undefined)
        log.warn({ refusal }, 'kv: a script did not end in time, and Redis does not end it');
    } catch (err) {
      log.warn({ err }, 'kv: a script did not end in time, and Redis was not asked to end it');
    }
  }
}
