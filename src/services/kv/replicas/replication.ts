import type { RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';

/** A place in what a primary has written: all that comes at or before it is there. */
export interface Position {
  /** Beginning of the replication id: after a failover that lost writes, the same offset is another place. */
  readonly history: string;
  /** In bytes of the replication stream. */
  readonly offset: number;
}

export interface Replication {
  readonly role: 'master' | 'slave';
  /** A primary has no link; of a replica, whether it follows its primary now. */
  readonly linked: boolean;
  /** Written by a primary, applied by a replica. */
  readonly position: Position;
}

/** `ROLE` would be cheaper by 1.2 µs of Redis' time, but tells no replication id. */
export const ASK_REPLICATION: Command = ['INFO', 'replication'];

const HISTORY_LENGTH = 16;

/** The reply to `ASK_REPLICATION`; `undefined` for an error, or for a server that says something else. */
export function readReplication(reply: RespValue): Replication | undefined {
  if (!(reply instanceof Buffer)) return undefined;
  const text = reply.toString('latin1');
  const role = fieldOf(text, 'role');
  if (role !== 'master' && role !== 'slave') return undefined;
  const history = fieldOf(text, 'master_replid')?.slice(0, HISTORY_LENGTH) ?? '';
  // what a replica has received and not yet applied is not counted in slave_repl_offset
  const offset = Number(fieldOf(text, role === 'master' ? 'master_repl_offset' : 'slave_repl_offset'));
  if (history.length < HISTORY_LENGTH || !Number.isSafeInteger(offset)) return undefined;
  const linked = fieldOf(text, 'master_link_status') === 'up';
  return { role, linked, position: { history, offset } };
}

function fieldOf(text: string, name: string): string | undefined {
  const label = `\n${name}:`;
  const at = text.indexOf(label);
  if (at < 0) return undefined;
  const start = at + label.length;
  return text.slice(start, text.indexOf('\r', start));
}
