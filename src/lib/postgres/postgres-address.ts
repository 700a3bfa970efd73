import { addressesOf } from '../several-hosts.js';

/** libpq's parameter of the address; libpq's own default, `any`, is none of ours: services write. */
const PARAMETER = 'target_session_attrs';

/** Which servers are good for an address, by libpq's words (its manual, 32.1.2). */
export const SESSION_KINDS = [
  'any',
  'read-write',
  'primary',
  'read-only',
  'standby',
  'prefer-standby',
] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

export interface PostgresAddress {
  /** One a host, without the parameter. */
  readonly urls: readonly string[];
  /** `undefined`: one host that may be whatever it is. */
  readonly kind: SessionKind | undefined;
}

/** Reads an address that may name several hosts. @param byDefault what is wanted of several where it does not say so */
export function postgresAddress(address: string, byDefault: SessionKind = 'read-write'): PostgresAddress {
  const parsed = addressesOf(address).map((url) => new URL(url));
  const named = parsed[0]?.searchParams.get(PARAMETER) as SessionKind | null | undefined;
  for (const url of parsed) url.searchParams.delete(PARAMETER);
  const kind = named ?? (parsed.length > 1 ? byDefault : undefined);
  return {
    urls: parsed.map(({ href }) => href),
    kind: kind === 'any' && parsed.length === 1 ? undefined : kind,
  };
}

/** What is wrong with the parameter, if anything. */
export function sessionKindProblem(address: string): string | undefined {
  const [first = ''] = addressesOf(address);
  if (!URL.canParse(first)) return undefined;
  const kind = new URL(first).searchParams.get(PARAMETER);
  if (kind === null || SESSION_KINDS.some((one) => one === kind)) return undefined;
  return `${PARAMETER}: expected ${SESSION_KINDS.join(', ')}`;
}
