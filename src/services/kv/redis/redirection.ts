import { parseAddress } from '../../../lib/address.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
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

const NOT_A_CLUSTER = new RespError(
  'ERR Redis runs as a cluster, which this database is not configured for; the command was not executed',
);

/** What the client of a database gets that is not configured as a cluster: where the other nodes are is not for it. */
export function withoutRedirection(error: RespError): RespError {
  return /^(MOVED|ASK) \d+ /.test(error.text) ? NOT_A_CLUSTER : error;
}
