import { createHash, randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
/** The SDKs' receivers accept no other issuer. */
const ISSUER = 'Upstash';
/** How long a signature is good, in seconds. */
const LIFETIME_S = 300;
/**
 * HS256 over the destination as the sender spelled it (`sub`, compared as text by receivers) and the SHA-256 of the
 * body (`body`, base64url). The key is the text of the signing key, not something encoded in it.
 * @param now Unix time in ms
 */
export function signer(signingKey, now) {
    const key = new TextEncoder().encode(signingKey);
    return (url, body) => {
        const issuedAt = Math.floor(now() / 1_000);
        return new SignJWT({ body: createHash('sha256').update(body).digest('base64url') })
            .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
            .setIssuer(ISSUER)
            .setSubject(url)
            .setIssuedAt(issuedAt)
            .setExpirationTime(issuedAt + LIFETIME_S)
            .setNotBefore(0)
            .setJti(`jwt_${randomUUID().replaceAll('-', '')}`)
            .sign(key);
    };
}
//# sourceMappingURL=signature.js.map