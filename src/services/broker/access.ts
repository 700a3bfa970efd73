import { HttpError } from '../../http/errors.js';
import type { Principal } from '../../http/route.js';
import { Quota, type QuotaSettings } from './quota.js';
import { issuedPermissions, type UserSettings } from './settings.js';

/** So Kafka, and what is built on it, calls topics that are not for its users. */
const INTERNAL = '__';

/** So begin the groups of tokens made at run time, in Kafka; no user's group may. */
export const ISSUED_PREFIX = 'portico-token:';

/** Of names of topics. */
interface Pattern {
  readonly beginning: string;
  /** Nothing may follow. */
  readonly isWhole: boolean;
}

function patternOf(text: string): Pattern {
  return text.endsWith('*')
    ? { beginning: text.slice(0, -1), isWhole: false }
    : { beginning: text, isWhole: true };
}

/** What is said of a user. */
type Permissions = Pick<UserSettings, 'topicPattern' | 'permission' | 'topicAdmin' | 'maxInstances'> &
  Partial<QuotaSettings>;

/** What one user of a cluster may do, and how groups of that user are called in Kafka. */
export class Access {
  private readonly patterns: readonly Pattern[];
  /** What the user may write and read a second; `undefined`: anything. */
  readonly quota: Quota | undefined;

  /** @param foreignPrefixes beginnings of the names of other users' groups, which must stay theirs */
  constructor(
    private readonly user: Permissions,
    readonly groupPrefix: string,
    private readonly foreignPrefixes: readonly string[],
  ) {
    this.patterns = user.topicPattern.split(',').map(patternOf);
    const { recordsPerSecond = null, bytesPerSecond = null } = user;
    this.quota = Quota.of({ recordsPerSecond, bytesPerSecond });
  }

  /** `null`: the contract's limit. */
  get maxInstances(): number | null {
    return this.user.maxInstances;
  }

  /** Whether a pattern of the user has room for the topic; a `*` alone has none for Kafka's own, such as `__consumer_offsets`. */
  mayName(topic: string): boolean {
    return this.patterns.some(({ beginning, isWhole }) => {
      if (topic.startsWith(INTERNAL) && !beginning.startsWith(INTERNAL)) return false;
      return isWhole ? topic === beginning : topic.startsWith(beginning);
    });
  }

  /** @throws HttpError 403 */
  checkAdminister(topic: string): void {
    if (!this.user.topicAdmin) throw forbidden('may not make, change or delete topics (topicAdmin)');
    this.checkNames([topic]);
  }

  /** @throws HttpError 403 */
  checkProduce(topics: Iterable<string>): void {
    if (this.user.permission === 'consume') throw forbidden('may only consume');
    this.checkNames(topics);
  }

  /** @throws HttpError 403 */
  checkConsume(topics: Iterable<string>): void {
    if (this.user.permission === 'produce') throw forbidden('may only produce');
    this.checkNames(topics);
  }

  /** @throws HttpError 403 */
  checkNames(topics: Iterable<string>): void {
    for (const topic of topics) if (!this.mayName(topic)) throw forbidden(`may not use the topic ${topic}`);
  }

  /** The group's name in Kafka. @throws HttpError 403 where it would be another user's */
  kafkaGroup(group: string): string {
    const name = this.groupPrefix + group;
    if (this.foreignPrefixes.some((prefix) => name.startsWith(prefix)))
      throw forbidden(`may not use the group ${group}, which is called like another user's`);
    return name;
  }

  /** The group's name for the user; `undefined` for the group of another. */
  ownGroup(kafkaGroup: string): string | undefined {
    if (!kafkaGroup.startsWith(this.groupPrefix)) return undefined;
    if (this.foreignPrefixes.some((prefix) => kafkaGroup.startsWith(prefix))) return undefined;
    return kafkaGroup.slice(this.groupPrefix.length);
  }
}

/**
 * Every user's access by name. Groups of different users do not meet: those of the first are called in Kafka as they
 * are, those of the others begin with the user's name and a colon, unless a user has a prefix of its own.
 */
export function accessByUser(users: readonly UserSettings[]): Map<string, Access> {
  const prefixes = users.map(
    ({ username, groupPrefix }, i) => groupPrefix ?? (i === 0 ? '' : `${username}:`),
  );
  return new Map(
    users.map((user, i) => {
      const own = prefixes[i] as string;
      const others = [...prefixes, ISSUED_PREFIX];
      const foreign = others.filter((prefix) => prefix.length > own.length && prefix.startsWith(own));
      return [user.username, new Access(user, own, [...new Set(foreign)])];
    }),
  );
}

/** Everybody's access: that of users, and that of tokens made at run time. */
export class AccessTable {
  private users: ReadonlyMap<string, Access>;
  /** Of tokens; a token's principal lives as long as it is valid. */
  private readonly issued = new WeakMap<Principal, Access>();

  constructor(users: readonly UserSettings[]) {
    this.users = accessByUser(users);
  }

  /** The users are others now; tokens stay. */
  change(users: readonly UserSettings[]): void {
    this.users = accessByUser(users);
  }

  /** Of the users. */
  values(): Iterable<Access> {
    return this.users.values();
  }

  of(principal: Principal): Access {
    const { name, permissions } = principal;
    const found = permissions === undefined ? this.users.get(name) : this.issued.get(principal);
    if (found !== undefined) return found;
    if (permissions === undefined) throw new Error(`no access is known of ${name}`);
    const given = { ...issuedPermissions.parse(permissions), maxInstances: null };
    const access = new Access(given, `${ISSUED_PREFIX}${name}:`, []);
    this.issued.set(principal, access);
    return access;
  }
}

function forbidden(what: string): HttpError {
  return new HttpError('forbidden', `These credentials ${what}.`);
}
