import { HttpError } from '../../../http/errors.js';
import { type Access, ISSUED_PREFIX } from '../access.js';
import type { Topic } from '../kafka/topics.js';
import { groupOfKey } from './instance-state.js';

/**
 * How many consumer instances each user may have: the contract's limit holds for the one user of its service, so that each
 * user of a gateway has it, and none takes the places of another. Users who share their groups share their places.
 */
export class InstanceShares {
  private readonly byOwner = new Map<string, Access[]>();

  constructor(accesses: Iterable<Access>) {
    this.divide(accesses);
  }

  /** Among these users from now on. */
  divide(accesses: Iterable<Access>): void {
    this.byOwner.clear();
    for (const access of accesses)
      this.byOwner.set(access.groupPrefix, [...(this.byOwner.get(access.groupPrefix) ?? []), access]);
  }

  /** Whose a group is, by its name in Kafka: the longest prefix that it begins with. */
  ownerOf(group: string): string {
    if (group.startsWith(ISSUED_PREFIX)) return group.slice(0, group.indexOf(':', ISSUED_PREFIX.length) + 1);
    let owner = '';
    for (const prefix of this.byOwner.keys())
      if (prefix.length > owner.length && group.startsWith(prefix)) owner = prefix;
    return owner;
  }

  /** How many each owner has. @param keys `instanceKey` of all instances */
  countsOf(keys: Iterable<string>): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const key of keys) {
      const owner = this.ownerOf(groupOfKey(key));
      counts[owner] = (counts[owner] ?? 0) + 1;
    }
    return counts;
  }

  /**
   * @param count instances of the owner, with the one that is to be made
   * @param topics all of the cluster
   * @throws HttpError 409
   */
  check(owner: string, count: number, topics: readonly Topic[]): void {
    const limit = this.limitOf(owner, topics);
    if (count <= limit) return;
    const text = `These credentials have as many consumer instances as they may (${limit}: maxInstances of the user, else the partitions of all its topics); delete one first.`;
    throw new HttpError('conflict', text);
  }

  private limitOf(owner: string, topics: readonly Topic[]): number {
    // another gateway may have let the token in
    if (owner.startsWith(ISSUED_PREFIX))
      return topics.reduce((sum, { partitions }) => sum + partitions.length, 0);
    const accesses = this.byOwner.get(owner) ?? [];
    return Math.max(
      0,
      ...accesses.map(
        (access) =>
          access.maxInstances ??
          topics.reduce(
            (sum, { name, partitions }) => sum + (access.mayName(name) ? partitions.length : 0),
            0,
          ),
      ),
    );
  }
}
