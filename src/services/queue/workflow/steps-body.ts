import { Pace } from '../../../lib/slices.js';
import type { ToldStep } from './run-rows.js';

/** Bytes of a step's body that are written at once; base64 takes three together. */
const PART = 48 * 1024;

/** One step as deliveries tell it, in pieces: of what was posted as base64 nothing need be escaped. */
export function* stepTexts({ messageId, body }: ToldStep): Generator<string> {
  yield `{"messageId":${JSON.stringify(messageId)},"body":"${body.toString('base64', 0, PART)}`;
  for (let at = PART; at < body.length; at += PART) yield body.toString('base64', at, at + PART);
  yield '","callType":"step"}';
}

/** A history as deliveries tell it: a JSON array of what was posted, each as base64. */
export async function stepsBody(steps: readonly ToldStep[]): Promise<Buffer> {
  const pace = new Pace();
  const parts: Buffer[] = [];
  let text = '[';
  for (const [i, step] of steps.entries()) {
    if (i > 0) text += ',';
    for (const part of stepTexts(step)) {
      text += part;
      if (text.length < PART) continue;
      parts.push(Buffer.from(text, 'latin1'));
      text = '';
      await pace.rest();
    }
  }
  parts.push(Buffer.from(`${text}]`, 'latin1'));
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
}
