import { createHash, createHmac, randomUUID } from 'node:crypto';

/** The SDKs' receivers accept no other issuer. */
const ISSUER = 'Upstash';
/** How long a signature is good, in seconds. */
const LIFETIME_S = 300;
const HEADER = encoded({ alg: 'HS256', typ: 'JWT' });

/** Signs one delivery: the JWT that goes out in `Upstash-Signature`. */
export type Sign = (url: string, body: Buffer) => string;

/**
 * HS256 over the destination as the sender spelled it (`sub`, compared as text by receivers) and the SHA-256 of the
 * body (`body`, base64url). The key is the text of the signing key, not something encoded in it.
 *
 * Not by jose: its way through WebCrypto and the thread pool takes 31 us of CPU instead of 6, for every delivery.
 * @param signingKey asked for each signature, because keys rotate
 * @param now Unix time in ms
 */
export function signer(signingKey: () => string, now: () => number): Sign {
  return (url, body) => {
    const issuedAt = Math.floor(now() / 1_000);
    const claims = encoded({
      iss: ISSUER,
      sub: url,
      iat: issuedAt,
      exp: issuedAt + LIFETIME_S,
      nbf: 0,
      jti: `jwt_${randomUUID().replaceAll('-', '')}`,
      body: createHash('sha256').update(body).digest('base64url'),
    });
    const content = `${HEADER}.${claims}`;
    return `${content}.${createHmac('sha256', signingKey()).update(content).digest('base64url')}`;
  };
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
