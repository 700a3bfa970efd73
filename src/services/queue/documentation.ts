import type { OperationExample, ServiceDocumentation } from '../../http/route.js';

const messageId = 'msg_26hZCxZCuWyyTWPmSVBrNB';
const dlqId = '1767225600000-0';
const at = 1_767_225_600_000;
const url = 'https://example.com/api/hello';
const published = { messageId, url };
const message = {
  ...published,
  method: 'POST',
  header: { 'Content-Type': ['application/json'] },
  body: '{"hello":"world"}',
  maxRetries: 3,
  notBefore: at,
  createdAt: at,
};
const letter = { ...message, dlqId, responseStatus: 500, responseHeader: {}, responseBody: 'oops' };
const event = { ...message, time: at, state: 'DELIVERED', body: 'eyJoZWxsbyI6IndvcmxkIn0=' };
const queue = { name: 'orders', createdAt: at, updatedAt: at, parallelism: 2, paused: false, lag: 7 };
const group = { name: 'welcome', createdAt: at, updatedAt: at, endpoints: [{ name: 'mail', url }] };
const schedule = {
  scheduleId: 'nightly',
  cron: '0 4 * * *',
  destination: url,
  method: 'POST',
  header: {},
  retries: 3,
  isPaused: false,
  createdAt: at,
};
const key = {
  flowControlKey: 'user-7',
  waitListSize: 0,
  parallelismMax: 5,
  parallelismCount: 1,
  rateMax: 100,
  rateCount: 12,
  ratePeriod: 60,
  ratePeriodStart: 1_767_225_600,
  isPaused: false,
  isPinnedParallelism: false,
  isPinnedRate: false,
};
const workflowRunId = 'wfr_q1w2e3r4t5';
const run = { workflowRunId, workflowCreatedAt: at };
const step = { stepId: 0, stepName: 'init', stepType: 'Initial', concurrent: 1 };
const deadRun = { ...letter, ...run, workflowUrl: url };
const runs = {
  runs: [
    {
      workflowRunId,
      workflowUrl: url,
      workflowState: 'RUN_SUCCESS',
      workflowRunCreatedAt: at,
      workflowRunCompletedAt: at,
      steps: [],
    },
  ],
};
const waiter = {
  url,
  deadline: 1_767_830_400,
  headers: { 'Upstash-Workflow-RunId': [workflowRunId] },
  timeoutUrl: url,
  timeoutHeaders: { 'Upstash-Workflow-RunId': [workflowRunId] },
};
const entry = { destination: url, headers: { 'Upstash-Delay': '10s' }, body: '{"hello":"world"}' };
const madeRuns: OperationExample = { query: { dlqIds: dlqId }, reply: { workflowRuns: [run], cursor: '' } };
const nothing: OperationExample = { reply: {} };

export const documentation: ServiceDocumentation = {
  about:
    'Messages to HTTP destinations, at least once: delays, retries, schedules, ordered queues, flow control, dead letters; and durable workflows.',
  names: {
    destination: url,
    destinationOrId: 'nightly',
    queue: 'orders',
    group: 'welcome',
    id: messageId,
    key: 'user-7',
    verb: 'pause',
    eventId: 'order-paid',
    user: 'defaultUser',
    runId: workflowRunId,
  },
  examples: {
    'queue.publish': {
      headers: { 'upstash-delay': '10s', 'upstash-retries': '5' },
      body: { hello: 'world' },
      reply: published,
    },
    'queue.enqueue': { body: { order: 7 }, reply: published },
    'queue.batch': { body: [entry], reply: [published] },
    'queue.getMessage': { reply: message },
    'queue.cancelMessage': { reply: { cancelled: 1 } },
    'queue.retryMessageNow': { reply: { messageId } },
    'queue.cancelMessages': { query: { label: 'import', count: '100' }, reply: { cancelled: 100 } },
    'queue.listDeadLetters': { query: { responseStatus: '500' }, reply: { messages: [letter] } },
    'queue.deleteDeadLetters': { query: { dlqIds: dlqId }, reply: { deleted: 1 } },
    'queue.retryDeadLetters': {
      query: { dlqIds: dlqId },
      reply: { cursor: '', responses: [{ messageId }] },
    },
    'queue.getDeadLetter': { reply: letter },
    'queue.deleteDeadLetter': { reply: { deleted: 1 } },
    'queue.retryDeadLetter': { reply: { messageId } },
    'queue.events': { query: { state: 'DELIVERED' }, reply: { events: [event] } },
    'queue.logs': { query: { state: 'DELIVERED' }, reply: { logs: [event] } },
    'queue.listUrlGroups': { reply: [group] },
    'queue.getUrlGroup': { reply: group },
    'queue.deleteUrlGroup': nothing,
    'queue.setUrlGroupHeaders': { body: { headers: { 'Upstash-Retries': '5' } }, reply: {} },
    'queue.addEndpoints': { body: { endpoints: [{ name: 'mail', url }] }, reply: {} },
    'queue.removeEndpoints': { body: { endpoints: [{ name: 'mail' }] }, reply: {} },
    'queue.createSchedule': {
      headers: { 'upstash-cron': '0 4 * * *', 'upstash-schedule-id': 'nightly' },
      body: { report: 'daily' },
      reply: { scheduleId: 'nightly' },
    },
    'queue.getSchedule': { reply: schedule },
    'queue.deleteSchedule': nothing,
    'queue.listSchedules': { reply: [schedule] },
    'queue.pauseSchedule': nothing,
    'queue.resumeSchedule': nothing,
    'queue.runSchedule': { reply: published },
    'queue.upsertQueue': { body: { queueName: 'orders', parallelism: 2 }, reply: {} },
    'queue.listQueues': { reply: [queue] },
    'queue.getQueue': { reply: queue },
    'queue.deleteQueue': nothing,
    'queue.pauseQueue': nothing,
    'queue.resumeQueue': nothing,
    'queue.listFlowControl': { reply: [key] },
    'queue.getFlowControl': { reply: key },
    'queue.changeFlowControl': nothing,
    'queue.globalParallelism': { reply: { parallelismMax: 300, parallelismCount: 4 } },
    'queue.listDestinations': {
      reply: [
        {
          destination: 'https://example.com:443',
          circuit: 'closed',
          failures: 0,
          active: 1,
          waiting: 0,
          turnedAway: 0,
        },
      ],
    },
    'queue.getKeys': { reply: { current: 'sig_now', next: 'sig_next' } },
    'queue.rotateKeys': { reply: { current: 'sig_next', next: 'sig_new' } },
    'queue.cancelWorkflowRuns': { query: { workflowRunIds: workflowRunId }, reply: { cancelled: 1 } },
    'queue.getWorkflowRunSteps': { reply: [{ messageId, body: 'eyJzdGVwSWQiOjB9', callType: 'step' }] },
    'queue.endWorkflowRun': { reply: { cancelled: 1 } },
    'queue.wait': {
      body: { url, timeout: '7d', timeoutUrl: url, timeoutHeaders: waiter.timeoutHeaders, step },
      reply: {},
    },
    'queue.notify': { body: { paid: true }, reply: [{ waiter, messageId, ...run }] },
    'queue.listWaiters': { reply: [waiter] },
    'queue.workflowHook': { body: { paid: true }, reply: {} },
    'queue.listDeadRuns': { query: { workflowRunId }, reply: { messages: [deadRun] } },
    'queue.deleteDeadRuns': { query: { dlqIds: dlqId }, reply: { deleted: 1 } },
    'queue.resumeDeadRuns': madeRuns,
    'queue.resumeDeadRun': { reply: run },
    'queue.restartDeadRuns': madeRuns,
    'queue.restartDeadRun': { reply: run },
    'queue.callFailureFunction': { reply: run },
    'queue.getDeadRun': { reply: deadRun },
    'queue.deleteDeadRun': { reply: { deleted: 1 } },
    'queue.trigger': { body: { order: 7 }, reply: run },
    'queue.batchTrigger': { body: [{ destination: url, body: { order: 7 } }], reply: [run] },
    'queue.workflowEvents': { reply: runs },
    'queue.workflowLogs': { reply: runs },
    'queue.quota': {
      reply: {
        maxTopics: 1_000,
        maxEndpointsPerTopic: 100,
        maxMessageSize: 10_485_760,
        maxRetries: 100,
        maxSchedules: 1_000,
        maxRequestsPerDay: -1,
        retention: 604_800,
        timeout: 900,
        maxDelay: 31_536_000,
      },
    },
  },
};
