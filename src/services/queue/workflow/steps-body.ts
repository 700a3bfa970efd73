import { Pace } from '../../../lib/slices.js';
import type { ToldStep } from './run-rows.js';

/** One step as deliveries tell it. */
export function stepEntry({ messageId, body }: ToldStep) {
  return { messageId, body: body.toString('base64'), callType: 'step' } as const;
}

/** A history as deliveries tell it: a JSON array of what was posted, each as base64. */
export async function stepsBody(steps: readonly ToldStep[]): Promise<Buffer> {
  const pace = new Pace();
  const parts: Buffer[] = [];
  for (const [i, step] of steps.entries()) {
    parts.push(Buffer.from((i === 0 ? '[' : ',') + JSON.stringify(stepEntry(step)), 'latin1'));
    await pace.rest();
  }
  parts.push(Buffer.from(steps.length === 0 ? '[]' : ']'));
  return Buffer.concat(parts);
}
