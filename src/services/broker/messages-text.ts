import { JsonText } from '../../http/route.js';
import type { Message } from './schemas.js';

/**
 * The body of a reply, as bytes: Node measures a long string, sets aside three times its length and encodes it while it
 * writes.
 * @param messages or their JSON
 */
export function messagesText(messages: readonly Message[] | string): JsonText {
  return new JsonText(Buffer.from(typeof messages === 'string' ? messages : JSON.stringify(messages)));
}
