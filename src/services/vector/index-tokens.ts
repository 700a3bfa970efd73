import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Principal } from '../../http/route.js';

/** Whoever may make and drop indexes. */
export const ADMINISTRATOR: Principal = { name: 'administrator', access: 'full' };

/** Whoever shows a token of an index that was made at run time. */
export class IndexHolder implements Principal {
  readonly name: string;
  readonly key: string;

  constructor(
    readonly indexId: number,
    /** Of the index when the token was made; another one by now: it is void. */
    readonly salt: string,
    readonly access: 'full' | 'read',
  ) {
    this.name = access === 'full' ? 'token' : 'read-only token';
    this.key = `${indexId} ${salt} ${access}`;
  }
}

/** `vx_<index>_<salt>_<f or r>_<mac>` */
const TOKEN = /^vx_([1-9]\d{0,8})_([a-z0-9]{1,64})_([fr])_([A-Za-z0-9_-]{43})$/;

/**
 * Tokens of indexes that were made at run time. They are derived, not stored: every gateway with the same administrator's token
 * knows them at once, whether Postgres answers or not, and neither the database nor a backup of it holds one.
 */
export class IndexTokens {
  private readonly key: Buffer;

  constructor(adminToken: string) {
    this.key = Buffer.from(hkdfSync('sha256', adminToken, '', 'portico vector index tokens', 32));
  }

  token(indexId: number, salt: string, access: 'full' | 'read'): string {
    const head = `vx_${indexId}_${salt}_${access === 'full' ? 'f' : 'r'}`;
    return `${head}_${this.mac(head)}`;
  }

  /** @returns undefined when it is none of ours; whether its index is still there is another question */
  open(token: string): IndexHolder | undefined {
    const [, id, salt, access, mac] = TOKEN.exec(token) ?? [];
    if (id === undefined || salt === undefined || mac === undefined) return undefined;
    const expected = this.mac(token.slice(0, -mac.length - 1));
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(expected))) return undefined;
    return new IndexHolder(Number(id), salt, access === 'f' ? 'full' : 'read');
  }

  private mac(text: string): string {
    return createHmac('sha256', this.key).update(text).digest('base64url');
  }
}
