import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import type { Logger } from '../../../lib/logger.js';
import { classifyDatabaseError, type Queryable } from '../../../lib/postgres/postgres.js';
import { type AddressTools, addressedMessages } from '../intake/addressed-messages.js';
import { type IntakeTools, takeInWith } from '../intake/intake.js';
import type { DailyUsage } from '../intake/usage.js';
import type { DueTicket } from '../message/message.js';
import type { HeldMessages, Waiting } from '../order/held-messages.js';
import type { Schedule, Schedules } from './schedules.js';

/** How often due schedules are asked for, in ms: they are due on whole minutes, and run within a second of them. */
const EVERY_MS = 500;
/** Schedules that are run at once; each takes a connection to Postgres, of which others need some. */
const AT_ONCE = 5;

export interface SchedulerTools {
  readonly schedules: Schedules;
  readonly address: AddressTools;
  readonly intake: IntakeTools;
  readonly heldMessages: HeldMessages;
  readonly usage: DailyUsage;
  readonly onAccepted: (count: number) => void;
  readonly log: Logger;
}

/** Turns schedules into messages when their time comes. Every gateway asks; the row's lock lets one run each time. */
export class Scheduler {
  private readonly timer: NodeJS.Timeout;
  private running: Promise<void> | undefined;
  private stopping = false;
  private failing = false;
  /** Schedules that could not be run last time; told once, not twice a second. */
  private readonly failingSchedules = new Set<string>();

  constructor(private readonly tools: SchedulerTools) {
    this.timer = setInterval(() => {
      this.running ??= this.runDue().finally(() => {
        this.running = undefined;
      });
    }, EVERY_MS);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearInterval(this.timer);
    await this.running;
  }

  private async runDue(): Promise<void> {
    const failed: string[] = [];
    try {
      // most times there is none, which one statement tells
      if (!(await this.runOne(failed))) {
        this.failing = false;
        return;
      }
      const lanes = Array.from({ length: AT_ONCE }, () => this.runWhileDue(failed));
      const broken = (await Promise.allSettled(lanes)).find(({ status }) => status === 'rejected');
      if (broken?.status === 'rejected') throw broken.reason;
      this.failing = false;
    } catch (err) {
      // once an outage, not twice a second
      if (!this.failing) this.tools.log.warn({ err }, 'queue: schedules cannot be run');
      this.failing = true;
    }
  }

  private async runWhileDue(failed: string[]): Promise<void> {
    while (!this.stopping && (await this.runOne(failed)));
  }

  /** @param failed ids of those that cannot be run this time, which must not hold up the others; a further one is added */
  private async runOne(failed: string[]): Promise<boolean> {
    const { schedules, heldMessages, usage, onAccepted } = this.tools;
    let tickets: readonly DueTicket[] = [];
    let waiting: Waiting | undefined;
    let count = 0;
    let id: string | undefined;
    const run = async (connection: Queryable, schedule: Schedule) => {
      id = schedule.id;
      const made = await this.takeIn(connection, schedule);
      tickets = made.tickets;
      waiting = made.waiting;
      count = made.ids.length;
      return made.ids;
    };
    const ran = await schedules.runNext(run, failed).catch((err: unknown) => {
      if (id === undefined || classifyDatabaseError(err).kind === 'unavailable') throw err;
      failed.push(id);
      this.noteFailure(id, err);
      return undefined;
    });
    if (ran === undefined) return true;
    if (id !== undefined) this.failingSchedules.delete(id);
    // after the commit; what RabbitMQ does not get now the sweeper brings
    if (waiting !== undefined) heldMessages.begin(waiting);
    await heldMessages.send(tickets);
    await usage.charge(count);
    onAccepted(count);
    return ran;
  }

  private noteFailure(schedule: string, err: unknown): void {
    if (!this.failingSchedules.has(schedule))
      this.tools.log.error({ err, schedule }, 'queue: a schedule cannot be run');
    this.failingSchedules.add(schedule);
  }

  private async takeIn(
    connection: Queryable,
    schedule: Schedule,
  ): Promise<{ ids: readonly string[]; tickets: readonly DueTicket[]; waiting?: Waiting }> {
    const { address, intake, log } = this.tools;
    try {
      const { messages } = await addressedMessages(requestOf(schedule), address);
      const { stored, tickets, waiting } = await takeInWith(connection, messages, intake);
      return { ids: stored.map(({ messageId }) => messageId), tickets, waiting };
    } catch (err) {
      // its URL group is gone, or a limit is lower than it was: that is no reason to stop the others
      if (!(err instanceof HttpError)) throw err;
      log.warn({ err, schedule: schedule.id }, 'queue: a schedule made no messages');
      return { ids: [], tickets: [] };
    }
  }
}

/** The publish that a schedule stands for. */
export function requestOf(schedule: Schedule) {
  const headers: IncomingHttpHeaders = { ...schedule.headers };
  return {
    destination: schedule.destination,
    headers,
    settings: new Map(Object.entries(schedule.controls)),
    body: schedule.body,
    callerIp: schedule.callerIp,
    scheduleId: schedule.id,
  };
}
