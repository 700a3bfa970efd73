import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { AccessToken } from '../../../lib/outbound/access-token.js';

/** How to get into the cluster. */
export interface KafkaSecurity {
  /** `undefined`: without TLS. */
  readonly tls: TlsOptions | undefined;
  readonly sasl:
    | { readonly mechanism: string; readonly username: string; readonly password: string }
    | undefined;
  /** For SASL OAUTHBEARER, in the place of `sasl`. */
  readonly token?: AccessToken | undefined;
}

/** The name of kafkajs' errors of this kind. */
export const SASL_REFUSED = 'KafkaJSSASLAuthenticationError';

/** What kafkajs gives an authentication of one's own to send bytes by (its documentation, "Custom Authentication Mechanisms"). */
interface Sender {
  saslAuthenticate(exchange: {
    request: { encode(): Promise<Buffer> };
    response: { decode(reply: Buffer): Promise<Buffer>; parse(reply: Buffer): Promise<Buffer> };
  }): Promise<Buffer>;
}

/** SASL as kafkajs wants it; it keeps its authenticator in the object. @throws OutboundError where there is no access token */
export async function saslOf({ sasl, token }: KafkaSecurity): Promise<object | null> {
  if (token === undefined) return sasl === undefined ? null : { ...sasl };
  const value = await token.value();
  const authenticationProvider = (sender: Sender) => ({ authenticate: () => authenticate(sender, value) });
  return { mechanism: 'oauthbearer', authenticationProvider };
}

const END = '\u0001';
/** Before the bytes of a message, in both directions. */
const LENGTH_BYTES = 4;

/**
 * OAUTHBEARER (RFC 7628, 3.1). kafkajs' own does not read the reply: a token that was refused counted as taken, and the broker
 * answered what came next as it answers nobody: no topics, for example.
 */
async function authenticate({ saslAuthenticate }: Sender, token: string): Promise<void> {
  const send = (text: string) =>
    saslAuthenticate({
      request: { encode: async () => withLength(Buffer.from(text)) },
      response: { decode: async (reply) => reply, parse: async (reply) => reply },
    });
  const reply = await send(`n,,${END}auth=Bearer ${token}${END}${END}`);
  if (reply.length <= LENGTH_BYTES) return;
  // by which a client says that it has seen the refusal
  await send(END).catch(() => undefined);
  throw Object.assign(new Error('Kafka refused the access token'), { name: SASL_REFUSED });
}

function withLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
