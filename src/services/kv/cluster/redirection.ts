import { parseAddress } from '../address.js';
import { RespError, type RespValue } from '../resp-decoder.js';
import type { NodeName } from './node-address.js';

/** A node's word that another one has the slot; the command did not run. */
export interface Redirection {
  readonly slot: number;
  readonly to: NodeName;
  /** For this command only, with ASKING before it; else for good. */
  readonly asking: boolean;
}

/** @param from the node that answered: where a redirection without a host leads, but for the port */
export function redirectionOf(reply: RespValue, from: NodeName): Redirection | undefined {
  if (!(reply instanceof RespError)) return undefined;
  const match = /^(MOVED|ASK) (\d{1,5}) (.*):(\d{1,5})$/.exec(reply.text);
  if (match === null) return undefined;
  const [, kind, slot, host, port] = match;
  return {
    slot: Number(slot),
    to: `${host === '' ? parseAddress(from).host : host}:${port}`,
    asking: kind === 'ASK',
  };
}
