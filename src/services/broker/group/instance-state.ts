import type { GroupAssignments } from '../schemas.js';

export interface InstanceName {
  readonly group: string;
  readonly instance: string;
}

/** One instance as others see it. */
export interface InstanceState {
  /** As Kafka knows it. */
  readonly group: string;
  readonly name: string;
  readonly topics: readonly { readonly topic: string; readonly partitions: number[] }[];
}

/** How long a request may wait for records. */
export interface Wait {
  readonly ms: number;
  /** Aborts when the time is over, or `gone` does. */
  readonly signal: AbortSignal;
  /** Aborts when nobody wants the records any more. */
  readonly gone: AbortSignal;
}

/** @param nameOf what the user calls a group; `undefined` where it is not the user's */
export function groupsOf(
  states: readonly InstanceState[],
  nameOf: (group: string) => string | undefined,
): GroupAssignments {
  const groups = new Map<string, GroupAssignments[number]['instances']>();
  for (const { group: kafkaGroup, name, topics } of states) {
    const group = nameOf(kafkaGroup);
    if (group === undefined) continue;
    const instances = groups.get(group) ?? [];
    groups.set(group, instances);
    // one that is just moving from one gateway to another may be at both
    const before = instances.findIndex((other) => other.name === name);
    if (before < 0) instances.push({ name, topics: [...topics] });
    else if (instances[before]?.topics.length === 0) instances[before] = { name, topics: [...topics] };
  }
  return [...groups].map(([name, instances]) => ({ name, instances }));
}

/** One text for each name. */
export function instanceKey({ group, instance }: InstanceName): string {
  return JSON.stringify([group, instance]);
}

/** The group in `instanceKey`. */
export function groupOfKey(key: string): string {
  return (JSON.parse(key) as [string, string])[0];
}
