import type { Queryable } from '../../../lib/postgres/postgres.js';
import { newMessageId } from '../message/message.js';
import type { Run } from './run.js';
import type { Follow } from './run-changes.js';
import { deliveryIn, stepMessage } from './run-messages.js';
import { placeOf } from './run-request.js';
import type { RunEnd, RunRows } from './run-rows.js';

/** Ends a run that is locked, and what it still had to do. */
export async function endRun(
  connection: Queryable,
  run: Run,
  end: RunEnd,
  messages: { except?: string; active?: boolean },
  rows: RunRows,
  follow: Follow,
): Promise<void> {
  await rows.end(connection, run, end);
  follow.free(await rows.cancelMessages(connection, [run], messages));
}

/** What a run tells the one that started it. */
export interface ToldEnd {
  /** The result as it was posted. */
  readonly body?: string;
  readonly isFailed?: boolean;
  readonly isCanceled?: boolean;
}

export interface TellTools {
  readonly rows: RunRows;
  readonly lazyBytes: number;
  /** Unix time in ms. */
  readonly now: number;
}

/**
 * Appends the end of a run to the one that waits for it. A parent that has ended meanwhile is told nothing; its log shows
 * the invocation.
 */
export async function tellParent(
  connection: Queryable,
  { invoker }: Run,
  { body, isFailed = false, isCanceled = false }: ToldEnd,
  { rows, lazyBytes, now }: TellTools,
  follow: Follow,
): Promise<void> {
  if (invoker === null) return;
  const parent = await rows.lock(connection, invoker.no);
  if (parent === undefined || parent.isOver) return;
  const out = JSON.stringify({ body, isFailed, isCanceled });
  const step = { ...invoker.step, out };
  const messageId = newMessageId(now);
  const later = await rows.append(connection, parent, {
    ...placeOf(invoker.step),
    kind: 'result',
    messageId,
    body: Buffer.from(JSON.stringify(step)),
  });
  if (later === undefined) return;
  const place = { id: messageId, seq: parent.nextSeq, delayMs: 0, now };
  follow.send(stepMessage(later, deliveryIn(later, invoker.asked), place, lazyBytes));
}
