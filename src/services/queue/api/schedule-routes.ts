import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { jsonRoute, type RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { addressedMessages } from '../intake/addressed-messages.js';
import { Controls } from '../intake/control-headers.js';
import { deliveredHeaders } from '../intake/forwarded-headers.js';
import { readPublishOptions } from '../intake/publish-options.js';
import { shownHeaders } from '../intake/redaction.js';
import { requestOf } from '../schedules/scheduler.js';
import type { Schedule } from '../schedules/schedules.js';
import {
  anyBody,
  nothingReply,
  publishReply,
  scheduleCreatedReply,
  scheduleHeaders,
  scheduleReply,
} from '../schemas.js';
import { arrayReply } from './array-reply.js';
import { bodyView, present } from './message-view.js';
import { acceptAll, requestOf as publishOf } from './publish-routes.js';
import { createSchedule } from './schedule-requests.js';

const route = jsonRoute<QueueDeps>();

/** Destinations were checked when the schedule was made, and are again at each time. */
const ANYWHERE = { judgeHost: () => undefined };

const params = z.object({ id: z.string() });

/** What the API shows of a schedule; a limit that was lowered since only hides what it is about. */
function view(schedule: Schedule, deps: QueueDeps): z.output<typeof scheduleReply> {
  const { headers, settings } = requestOf(schedule);
  const controls = new Controls(headers, settings);
  const unlimited = { maxRetries: Number.MAX_SAFE_INTEGER, maxDelay: Number.MAX_SAFE_INTEGER };
  const options = readPublishOptions(controls, headers, { limits: unlimited, guard: ANYWHERE, now: 0 });
  const { callback, failureCallback, flow, labels, redact } = options;
  return present({
    scheduleId: schedule.id,
    cron: schedule.cron,
    destination: schedule.destination,
    method: options.method,
    header: shownHeaders(
      deliveredHeaders(controls, headers, controls.get('header-forward') === 'true'),
      redact,
    ),
    ...bodyView('body', schedule.body, redact?.body === true),
    retries: controls.has('retries') ? options.maxRetries : Math.min(3, deps.config.maxRetries),
    delay: options.delayMs === 0 ? undefined : Math.round(options.delayMs / 1_000),
    callback: callback?.url,
    failureCallback: failureCallback?.url,
    callerIP: schedule.callerIp ?? undefined,
    callerIp: schedule.callerIp ?? undefined,
    isPaused: schedule.paused,
    queueName: controls.get('queue-name'),
    flowControlKey: flow?.key,
    parallelism: flow?.parallelism ?? undefined,
    rate: flow?.rate ?? undefined,
    period: flow?.period,
    retryDelayExpression: options.retryDelay,
    label: labels[0],
    labels: labels.length === 0 ? undefined : labels,
    createdAt: schedule.createdAt,
    lastScheduleTime: schedule.lastAt ?? undefined,
    nextScheduleTime: schedule.nextAt ?? undefined,
    lastScheduleStates: schedule.lastAt === null ? undefined : schedule.lastStates,
  }) as z.output<typeof scheduleReply>;
}

const creation = {
  kind: 'raw',
  summary:
    'Publishes the message at the times of Upstash-Cron (five fields, UTC unless it begins with CRON_TZ=Area/City). The same Upstash-Schedule-Id replaces the whole schedule.',
  methods: ['POST'],
  changesData: true,
  request: { headers: scheduleHeaders, body: anyBody },
  reply: scheduleCreatedReply,
  errors: [400, 401, 403, 404, 412, 413, 503],
} as const;

const create: RawRoute<QueueDeps> = {
  ...creation,
  prefix: true,
  operationId: 'queue.createSchedule',
  keepsEncoding: true,
  path: '/v2/schedules',
  documentedPath: '/v2/schedules/:destinationOrId',
  handle: (request, context, deps) => createSchedule(publishOf(request, context), deps),
};

/** A group's name looks like a schedule's id in the path. */
const createForGroup: RawRoute<QueueDeps> = {
  ...creation,
  operationId: 'queue.createGroupSchedule',
  isUndocumented: true,
  path: '/v2/schedules/:id',
  handle: (request, context, deps) => {
    const target = request.target.replace(/^\/v2\/schedules/, '');
    return createSchedule(publishOf({ ...request, target }, context), deps);
  },
};

const list = route({
  operationId: 'queue.listSchedules',
  summary: 'All schedules.',
  methods: ['GET'],
  path: '/v2/schedules',
  request: {},
  reply: z.array(scheduleReply),
  errors: [401, 503],
  handle: async (_input, _context, deps) =>
    arrayReply(deps.schedules.list(), (schedule) => view(schedule, deps)),
});

const get = route({
  operationId: 'queue.getSchedule',
  summary: 'A schedule with its last and next times.',
  methods: ['GET'],
  path: '/v2/schedules/:id',
  documentedPath: '/v2/schedules/:destinationOrId',
  request: { params },
  reply: scheduleReply,
  errors: [400, 401, 404, 503],
  handle: async ({ params: { id } }, _context, deps) => {
    const schedule = await deps.schedules.find(id);
    if (schedule === undefined) throw new HttpError('not_found', `There is no schedule ${id}.`);
    return view(schedule, deps);
  },
});

const remove = route({
  operationId: 'queue.deleteSchedule',
  audit: 'destructive',
  summary: 'Deletes a schedule; messages that it already made are delivered.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/schedules/:id',
  documentedPath: '/v2/schedules/:destinationOrId',
  request: { params },
  reply: nothingReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { id } }, _context, { schedules }) => {
    if (!(await schedules.delete(id))) throw new HttpError('not_found', `There is no schedule ${id}.`);
    return {};
  },
});

function pauseRoute(verb: 'pause' | 'resume') {
  return route({
    operationId: `queue.${verb}Schedule`,
    audit: 'administrative',
    summary:
      verb === 'pause'
        ? 'Skips the times of a schedule until it is resumed.'
        : 'Lets a paused schedule go on.',
    methods: ['PATCH', 'POST'],
    changesData: true,
    path: `/v2/schedules/:id/${verb}`,
    request: { params },
    reply: nothingReply,
    errors: [400, 401, 403, 404, 503],
    handle: async ({ params: { id } }, _context, { schedules }) => {
      if (!(await schedules.setPaused(id, verb === 'pause')))
        throw new HttpError('not_found', `There is no schedule ${id}.`);
      return {};
    },
  });
}

const runNow = route({
  operationId: 'queue.runSchedule',
  summary:
    'Publishes the message of a schedule now, beside its times, which stay as they are; also of a paused one. Answers as a publish does.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/schedules/:id/run',
  request: { params },
  reply: publishReply,
  errors: [400, 401, 403, 404, 412, 413, 429, 503],
  handle: async ({ params: { id } }, _context, deps) => {
    const schedule = await deps.schedules.find(id);
    if (schedule === undefined) throw new HttpError('not_found', `There is no schedule ${id}.`);
    const [answer] = await acceptAll([await addressedMessages(requestOf(schedule), deps)], deps);
    return answer?.reply ?? [];
  },
});

export const scheduleRoutes = [
  create,
  createForGroup,
  list,
  get,
  remove,
  pauseRoute('pause'),
  pauseRoute('resume'),
  runNow,
] as const;
