import { ERRORS, type ErrorCode, HttpError } from '../../../http/errors.js';
import type { CommitRequest } from '../group/group-offsets.js';
import type { InstanceName, InstanceState } from '../group/instance-state.js';
import type { ConsumeWishes } from '../schemas.js';

// What gateways say to each other: HTTP/1.1 with JSON on a port or socket of its own, each request with the secret.

/** What is asked of the owner of an instance, or (`list`, `yield`) of every gateway. */
export type PeerRequest =
  | {
      readonly operation: 'consume';
      readonly name: InstanceName;
      readonly topics: readonly string[];
      readonly headers: ConsumeWishes;
      readonly waitMs: number;
    }
  | ({ readonly operation: 'commit'; readonly name: InstanceName } & CommitRequest)
  | { readonly operation: 'remove'; readonly name: InstanceName }
  | { readonly operation: 'yield'; readonly name: InstanceName }
  | { readonly operation: 'takeBack'; readonly name: InstanceName; readonly delivery: string }
  | { readonly operation: 'list' };

/** How far a request has come: it goes to another machine first, then to one of that machine's workers, never back. */
export type Hop = 'machine' | 'worker';

export interface PeerMessage {
  readonly cluster: string;
  readonly hop: Hop;
  readonly request: PeerRequest;
}

export interface Pong {
  readonly id: string;
  /** It stops: what it has goes to others. */
  readonly isLeaving: boolean;
  /** Consumer instances by cluster and owner. */
  readonly instances: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export type ListReply = readonly InstanceState[];

/** Of a ping: the name of who asks. */
export const ID_HEADER = 'portico-id';
/** Of a consume's reply: whether the instance has joined its group, and how many records there are. */
export const JOINED_HEADER = 'portico-joined';
export const COUNT_HEADER = 'portico-count';
/** Of a consume's reply with records: by which they are confirmed or taken back. */
export const DELIVERY_HEADER = 'portico-delivery';
/** How the asker ends the body of a consume when its client has the records; else it breaks the connection. */
export const ARRIVED = '+';

export function errorBody(error: HttpError): string {
  return JSON.stringify({ code: error.code, message: error.message });
}

export function errorOf(text: string): HttpError {
  const { code, message } = JSON.parse(text) as { code: string; message: string };
  return new HttpError(code in ERRORS ? (code as ErrorCode) : 'backend_error', message);
}
