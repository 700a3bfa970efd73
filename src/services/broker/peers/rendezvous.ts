import { createHash } from 'node:crypto';

/**
 * Candidates by their weight for `key`, the owner first (rendezvous hashing): everybody who knows the same
 * candidates finds the same order, and one that comes or goes moves its own keys only.
 */
export function byWeight(candidates: readonly string[], key: string): string[] {
  return candidates
    .map((candidate) => ({ candidate, weight: weightOf(candidate, key) }))
    .sort((a, b) => (a.weight === b.weight ? 0 : a.weight < b.weight ? 1 : -1))
    .map(({ candidate }) => candidate);
}

function weightOf(candidate: string, key: string): string {
  return createHash('sha256').update(candidate).update('\0').update(key).digest('hex');
}
