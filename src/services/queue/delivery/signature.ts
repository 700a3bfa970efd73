import { createHash, createHmac, randomUUID } from 'node:crypto';
import type { ClaimedMessage } from '../message/message.js';
import type { SigningKeys } from '../store/signing-keys.js';

/** The SDKs' receivers accept no other issuer. */
const ISSUER = 'Upstash';
/** How long a signature is good, in seconds. */
const LIFETIME_S = 300;
const HEADER = encoded({ alg: 'HS256', typ: 'JWT' });

/** Signs one delivery: the headers by which a receiver knows that it is the gateway's. */
export type Sign = (message: ClaimedMessage) => Record<string, string>;

/** Signs with the JWT of `Upstash-Signature`, and where that is wanted in the form of Standard Webhooks as well. */
export function deliverySigner(
  keys: SigningKeys,
  now: () => number,
  { standardWebhooks }: { readonly standardWebhooks: boolean },
): Sign {
  const sign = signer(() => keys.current, now);
  return ({ id, prefix, url, body }) => ({
    [`${prefix}-Signature`]: sign(url, body),
    ...(standardWebhooks ? standardHeaders(keys, id, body, now()) : {}),
  });
}

/**
 * The headers of Standard Webhooks 1.0.0 ("Signature scheme"): `v1,` and the base64 of an HMAC-SHA-256 over id, time and body,
 * once for each key that receivers may have. A receiver's secret is `whsec_` and the base64 of a signing key's text.
 */
function standardHeaders(
  { current, next }: SigningKeys,
  id: string,
  body: Buffer,
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signatures = [current, next].map((key) => {
    const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
    return `v1,${hmac.digest('base64')}`;
  });
  return {
    'Webhook-Id': id,
    'Webhook-Timestamp': timestamp,
    'Webhook-Signature': signatures.join(' '),
  };
}

/**
 * HS256 over the destination as the sender spelled it (`sub`, compared as text by receivers) and the SHA-256 of the
 * body (`body`, base64url). The key is the text of the signing key, not something encoded in it.
 *
 * Not by jose: its way through WebCrypto and the thread pool takes 31 us of CPU instead of 6, for every delivery.
 * @param signingKey asked for each signature, because keys rotate
 * @param now Unix time in ms
 */
export function signer(signingKey: () => string, now: () => number): (url: string, body: Buffer) => string {
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
