import { randomBytes } from 'node:crypto';
import { HttpError } from '../../../http/errors.js';
import type { RawReply } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { unavailable } from '../errors.js';
import { addressedMessages, type PublishRequest } from '../intake/addressed-messages.js';
import { Controls } from '../intake/control-headers.js';
import { forwardable } from '../intake/forwarded-headers.js';
import { MAX_CRON_LENGTH, nextTime } from '../schedules/cron.js';
import { checkName } from '../store/names.js';

/** Instructions that are about the schedule, or would be wrong the second time. */
const NOT_FOR_MESSAGES =
  /^(upstash|service)-(cron|schedule-id|not-before|deduplication-id|content-based-deduplication)$/;

/** Makes a schedule of a publish with a cron expression. @throws HttpError 400, 404, 412, 413, 503 */
export async function createSchedule(request: PublishRequest, deps: QueueDeps): Promise<RawReply> {
  const controls = new Controls(request.headers, request.settings);
  const cron = controls.get('cron')?.trim();
  if (cron === undefined) throw new HttpError('invalid_request', 'A schedule needs the header Upstash-Cron.');
  checkCron(controls, cron, deps.now());
  const id = controls.get('schedule-id') ?? `scd_${randomBytes(12).toString('hex')}`;
  checkName(id, 'schedule');
  // whatever is wrong with its messages is told now; a group may still be made or change before the first of them
  const { messages } = await addressedMessages({ ...request, isSchedule: true }, deps);
  const key = messages[0]?.deduplicationKey ?? null;
  const winner = key === null ? id : await claimKey(key, id, deps);
  if (winner !== id) return { status: 202, body: JSON.stringify({ scheduleId: winner, deduplicated: true }) };
  const sent = Object.entries(controls.sent).filter(([name]) => !NOT_FOR_MESSAGES.test(name));
  await deps.schedules
    .put({
      id,
      cron,
      destination: request.destination,
      controls: Object.fromEntries(sent),
      headers: forwardable(request.headers),
      body: request.body,
      callerIp: request.callerIp,
    })
    .catch((error: unknown) => {
      throw unavailable(error);
    });
  return { status: 200, body: JSON.stringify({ scheduleId: id }) };
}

function checkCron(controls: Controls, cron: string, now: number): void {
  if (cron.length > MAX_CRON_LENGTH)
    throw controls.refusal('cron', `has at most ${MAX_CRON_LENGTH} characters`);
  let next: number | null;
  try {
    next = nextTime(cron, now);
  } catch (cause) {
    throw controls.refusal('cron', `is no cron expression of five fields: ${(cause as Error).message}`);
  }
  if (next === null) throw controls.refusal('cron', 'names a time that never comes');
}

async function claimKey(key: string, id: string, { accept }: QueueDeps): Promise<string> {
  try {
    return await accept.store.deduplicate(accept.database, `schedule ${key}`, id, accept.deduplicationMs);
  } catch (error) {
    throw unavailable(error);
  }
}
