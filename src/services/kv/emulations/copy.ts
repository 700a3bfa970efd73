import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Emulate } from './emulation.js';

/** Redis says so of one key in one database, whether it exists or not, and after it has checked the options. */
const SAME_OBJECT = 'ERR source and destination objects are the same';

/** COPY of a key to itself copies nothing: 0, as when the destination exists. */
export const emulateCopy: Emulate = (command) => ({ command, finish: sameObjectIsZero });

function sameObjectIsZero(reply: RespValue): RespValue {
  return reply instanceof RespError && reply.text === SAME_OBJECT ? '0' : reply;
}
