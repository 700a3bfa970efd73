import { createHash } from 'node:crypto';

/** Topic -> partitions. */
export type Assignment = ReadonlyMap<string, readonly number[]>;

/** How the leader of a group deals out partitions; opaque to the broker. */
export interface GroupProtocol {
  readonly name: string;
  /** What this member tells the leader; another one than before makes the group rebalance. */
  metadata(): Promise<Buffer>;
  assign(members: readonly { memberId: string; memberMetadata: Buffer }[]): Promise<AssignmentOf[]>;
  decode(assignment: Buffer): Assignment;
}

export interface AssignmentOf {
  readonly memberId: string;
  readonly memberAssignment: Buffer;
}

/** Kafka takes letters, digits, ".", "_" and "-"; another name is represented by its digest. */
export function staticMemberId(instance: string): string {
  if (/^[a-zA-Z0-9._-]{1,200}$/.test(instance) && !/^\.{1,2}$/.test(instance)) return instance;
  return `portico-${createHash('sha256').update(instance).digest('hex')}`;
}
