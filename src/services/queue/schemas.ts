import { z } from 'zod';

const published = z.object({
  messageId: z.string().describe('Begins with msg_; of an earlier message when this one repeats it.'),
  url: z.string().describe('The destination, as it was sent.'),
  deduplicated: z.literal(true).optional().describe('Nothing was stored: an earlier message has the key.'),
});

const wish = (words: string) => z.string().optional().describe(words);

/** What a publish may say in headers, for the documentation: `intake` reads them. */
export const publishHeaders = z.object({
  'upstash-method': wish('Of the delivery; POST by default.'),
  'upstash-delay': wish('Such as 30s, 5m or 1d10h.'),
  'upstash-not-before': wish('Unix time in seconds, instead of a delay.'),
  'upstash-retries': wish('After the first attempt; 3 by default.'),
  'upstash-retry-delay': wish('Formula in ms, such as pow(2, retried) * 1000.'),
  'upstash-timeout': wish('Of one attempt, such as 30s.'),
  'upstash-callback': wish('URL that gets the response of the destination.'),
  'upstash-failure-callback': wish('URL that is told when the last attempt has failed.'),
  'upstash-deduplication-id': wish('A second message with it is not stored for a while.'),
  'upstash-content-based-deduplication': wish('true: the same without an id, by what the message holds.'),
  'upstash-flow-control-key': wish('Messages with it share limits.'),
  'upstash-flow-control-value': wish('Such as parallelism=5, rate=100, period=1m.'),
  'upstash-label': wish('To find it by; several are separated by commas.'),
  'upstash-redact-fields': wish('What no reply may show: body, header or header[Name].'),
});

export const scheduleHeaders = publishHeaders.extend({
  'upstash-cron': z.string().describe('Five fields, UTC unless it begins with CRON_TZ=Area/City.'),
  'upstash-schedule-id': wish('Its name; an existing schedule of that name is replaced.'),
});

/** A body that is handed on as it is, for the documentation. */
export const anyBody = z.unknown().describe('Anything; handed on byte by byte.');

const headerLists = z.record(z.string(), z.array(z.string()));

/** An object of a URL, an array of a URL group. */
export const publishReply = z.union([published, z.array(published)]).meta({ id: 'PublishReply' });

export const batchReply = z
  .array(z.union([published, z.array(published), z.object({ error: z.string() })]))
  .meta({ id: 'BatchReply' });

export const nothingReply = z.object({});

export const cancelReply = z.object({
  cancelled: z.int(),
  cursor: z.string().optional().describe('Where a search among very many messages stopped.'),
});
export const deletedReply = z.object({
  deleted: z.int(),
  cursor: z.string().optional().describe('There may be more.'),
});
export const resentReply = z.object({ messageId: z.string() });
export const allResentReply = z.object({
  cursor: z.string().describe('Empty: there is no more.'),
  responses: z.array(resentReply),
});

export const expeditedReply = z.object({ messageId: z.string() });

export const messageReply = z
  .object({
    messageId: z.string(),
    url: z.string(),
    topicName: z.string().optional(),
    endpointName: z.string().optional(),
    method: z.string(),
    header: headerLists,
    body: z.string().optional(),
    bodyBase64: z.string().optional().describe('Instead of body, where the bytes are no text.'),
    maxRetries: z.int(),
    notBefore: z.number().describe('Unix time in ms.'),
    createdAt: z.number().describe('Unix time in ms.'),
    callback: z.string().optional(),
    callbackHeader: headerLists.optional(),
    failureCallback: z.string().optional(),
    failureCallbackHeader: headerLists.optional(),
    queueName: z.string().optional(),
    scheduleId: z.string().optional(),
    callerIP: z.string().optional(),
    callerIp: z.string().optional(),
    label: z.string().optional(),
    labels: z.array(z.string()).optional(),
    flowControlKey: z.string().optional(),
    parallelism: z.int().optional(),
    rate: z.int().optional(),
    period: z.int().optional().describe('Seconds.'),
    retryDelayExpression: z.string().optional(),
  })
  .meta({ id: 'QueueMessage' });

export const deadLetterReply = messageReply
  .extend({
    dlqId: z.string(),
    responseStatus: z.int().describe('0: no response came.'),
    responseHeader: headerLists,
    responseBody: z.string().optional(),
    responseBodyBase64: z.string().optional(),
    error: z.string().optional().describe('Why no response came.'),
    workflowRunId: z.string().optional().describe('Of a workflow run that failed, as are those that follow.'),
    workflowCreatedAt: z.number().optional().describe('Unix time in ms.'),
    workflowUrl: z.string().optional(),
    failureCallbackInfo: z
      .object({
        state: z.string(),
        responseStatus: z.int().optional(),
        responseHeader: headerLists.optional(),
        responseBody: z.string().optional(),
      })
      .optional()
      .describe('What became of the call of the failure function.'),
  })
  .meta({ id: 'DeadLetter' });

export const deadLettersReply = z.object({
  messages: z.array(deadLetterReply),
  cursor: z.string().optional(),
});

const event = messageReply
  .extend({
    time: z.number().describe('Unix time in ms.'),
    state: z.string(),
    body: z.string().describe('Base64.'),
    nextDeliveryTime: z.number().optional(),
    error: z.string().optional(),
    responseStatus: z.int().optional(),
    responseHeader: headerLists.optional(),
    responseHeaders: headerLists.optional(),
    responseBody: z
      .string()
      .optional()
      .describe('Base64; the first maxLoggedResponse bytes. The dead letter has all of the last response.'),
    timeout: z.number().optional().describe('ms'),
    callbackHeaders: headerLists.optional(),
    failureCallbackHeaders: headerLists.optional(),
    retryDelayExpr: z.string().optional(),
  })
  .meta({ id: 'QueueEvent' });

const page = { cursor: z.string().optional().describe('Absent on the last page.') };
export const eventsReply = z.object({ events: z.array(event), ...page });
export const logsReply = z.object({ logs: z.array(event), ...page });

const stepError = z.object({
  error: z.string().describe('The status and its name, or why no response came.'),
  status: z.int().describe('0: no response came.'),
  headers: headerLists,
  body: z.string().describe('The first maxLoggedResponse bytes.'),
  time: z.number().describe('Unix time in ms.'),
});

const stepState = z.enum(['STEP_PROGRESS', 'STEP_SUCCESS', 'STEP_RETRY', 'STEP_FAILED', 'STEP_CANCELED']);

const workflowStep = z
  .object({
    stepId: z.int().optional(),
    stepName: z.string(),
    stepType: z.string(),
    callType: z.enum(['step', 'toCallback', 'fromCallback']),
    messageId: z.string(),
    out: z.string().optional().describe('The result, or the payload of the start, as it was posted.'),
    state: stepState,
    concurrent: z.int().describe('Steps beside each other, with this one.'),
    createdAt: z.number().describe('Unix time in ms.'),
    retries: z.int().describe('Most of them.'),
    retryDelay: z.string().optional(),
    headers: headerLists.describe('Of the start; empty for other steps.'),
    sleepFor: z.int().optional().describe('Seconds.'),
    sleepUntil: z.int().optional().describe('Unix time in seconds.'),
    callUrl: z.string().optional(),
    callMethod: z.string().optional(),
    callHeaders: headerLists.optional(),
    callBody: z.string().optional(),
    callResponseStatus: z.int().optional(),
    callResponseHeaders: headerLists.optional(),
    callResponseBody: z.string().optional(),
    waitEventId: z.string().optional(),
    waitTimeout: z.boolean().optional().describe('Its time was over before the event came.'),
    waitTimeoutDeadline: z.number().optional().describe('Unix time in ms.'),
    waitTimeoutDuration: z.string().optional(),
    invokedWorkflowRunId: z.string().optional(),
    invokedWorkflowUrl: z.string().optional(),
    invokedWorkflowCreatedAt: z.number().optional(),
    invokedWorkflowRunBody: z.string().optional(),
    invokedWorkflowRunHeaders: headerLists.optional(),
    errors: z.array(stepError).optional().describe('Failed attempts at it, while it is not done.'),
  })
  .meta({ id: 'WorkflowStep' });

const workflowDelivery = z.object({
  messageId: z.string(),
  stepName: z.string().optional().describe('As far as the endpoint says it when it fails.'),
  state: stepState,
  retries: z.int(),
  retryDelay: z.string().optional(),
  errors: z.array(stepError).optional(),
});

const workflowRun = z
  .object({
    workflowRunId: z.string(),
    workflowUrl: z.string(),
    workflowState: z.enum(['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED']),
    workflowRunCreatedAt: z.number().describe('Unix time in ms.'),
    workflowRunCompletedAt: z.number().optional(),
    workflowRunResponse: z.string().optional().describe('The result as it was posted.'),
    label: z.string().optional().describe('The first of them.'),
    labels: z.array(z.string()).optional(),
    dlqId: z.string().optional().describe('As long as there is that dead letter.'),
    invoker: z
      .object({ workflowRunId: z.string(), workflowUrl: z.string(), workflowRunCreatedAt: z.number() })
      .optional(),
    failureFunction: z
      .object({
        messageId: z.string(),
        url: z.string(),
        state: z.enum(['CALLBACK_INPROGRESS', 'CALLBACK_SUCCESS', 'CALLBACK_FAIL', 'CALLBACK_CANCELED']),
        failStatus: z.int().optional(),
        failHeaders: headerLists.optional(),
        failResponse: z.string().optional(),
        dlqId: z.string(),
        errors: z.array(stepError).optional(),
        responseStatus: z.int().optional(),
        responseHeaders: headerLists.optional(),
        responseBody: z.string().optional(),
        nextDeliveryTime: z.number().optional(),
      })
      .optional(),
    steps: z.array(
      z.union([
        z.object({ type: z.enum(['sequential', 'parallel']), steps: z.array(workflowStep) }),
        z.object({ type: z.literal('next'), steps: z.array(workflowDelivery) }),
      ]),
    ),
  })
  .meta({ id: 'WorkflowRun' });

export const workflowLogsReply = z.object({
  runs: z.array(workflowRun),
  cursor: z.string().optional().describe('Absent on the last page.'),
});

export const urlGroupReply = z
  .object({
    name: z.string(),
    createdAt: z.number().describe('Unix time in ms.'),
    updatedAt: z.number(),
    endpoints: z.array(z.object({ name: z.string().optional(), url: z.string() })),
  })
  .meta({ id: 'UrlGroup' });

export const orderedQueueReply = z
  .object({
    name: z.string(),
    createdAt: z.number().describe('Unix time in ms.'),
    updatedAt: z.number(),
    parallelism: z.int(),
    paused: z.boolean(),
    lag: z.int().describe('Messages that are not finished.'),
  })
  .meta({ id: 'OrderedQueue' });

export const scheduleCreatedReply = z.object({
  scheduleId: z.string(),
  deduplicated: z.literal(true).optional(),
});

export const scheduleReply = z
  .object({
    scheduleId: z.string(),
    cron: z.string(),
    destination: z.string(),
    method: z.string(),
    header: headerLists,
    body: z.string().optional(),
    bodyBase64: z.string().optional(),
    retries: z.int(),
    delay: z.int().optional().describe('Seconds.'),
    callback: z.string().optional(),
    failureCallback: z.string().optional(),
    callerIP: z.string().optional(),
    callerIp: z.string().optional(),
    isPaused: z.boolean(),
    queueName: z.string().optional(),
    flowControlKey: z.string().optional(),
    parallelism: z.int().optional(),
    rate: z.int().optional(),
    period: z.int().optional(),
    retryDelayExpression: z.string().optional(),
    label: z.string().optional(),
    labels: z.array(z.string()).optional(),
    createdAt: z.number(),
    lastScheduleTime: z.number().optional(),
    nextScheduleTime: z.number().optional(),
    lastScheduleStates: z.record(z.string(), z.enum(['IN_PROGRESS', 'SUCCESS', 'FAIL'])).optional(),
  })
  .meta({ id: 'Schedule' });

export const flowControlReply = z
  .object({
    flowControlKey: z.string(),
    waitListSize: z.int(),
    parallelismMax: z.int().optional(),
    parallelismCount: z.int(),
    rateMax: z.int().optional(),
    rateCount: z.int(),
    ratePeriod: z.int().describe('Seconds.'),
    ratePeriodStart: z.int().describe('Unix time in seconds.'),
    isPaused: z.boolean(),
    isPinnedParallelism: z.boolean(),
    isPinnedRate: z.boolean(),
  })
  .meta({ id: 'FlowControl' });

export const globalParallelismReply = z.object({ parallelismMax: z.int(), parallelismCount: z.int() });

export const destinationsReply = z
  .array(
    z
      .object({
        destination: z.string().describe('Scheme, host and port.'),
        circuit: z
          .enum(['closed', 'open', 'half-open'])
          .describe('open: messages are kept back; half-open: a probe is under way.'),
        failures: z.int().describe('Deliveries in a row that waited in vain.'),
        active: z.int().describe('Deliveries under way that have only begun.'),
        waiting: z.int().describe('Deliveries under way that wait for their answer.'),
        turnedAway: z.int().describe('How often messages were put off since the destination last answered.'),
        openedAt: z.int().optional().describe('When the circuit opened, Unix time in ms.'),
        nextProbeAt: z.int().optional().describe('When the next probe may begin, Unix time in ms.'),
      })
      .meta({ id: 'QueueDestination' }),
  )
  .describe('As the process that answers sees them.');

export const keysReply = z.object({ current: z.string(), next: z.string() }).meta({ id: 'SigningKeys' });

export const quotaReply = z
  .object({
    maxTopics: z.int().describe('URL groups that may be created.'),
    maxEndpointsPerTopic: z.int(),
    maxMessageSize: z.int().describe('Bytes.'),
    maxRetries: z.int(),
    maxSchedules: z.int(),
    maxRequestsPerDay: z.int().describe('0 or less: no limit.'),
    retention: z.int().describe('Seconds that dead letters are kept.'),
    timeout: z.int().describe('Seconds for one delivery attempt.'),
    maxDelay: z.int().describe('Seconds.'),
  })
  .meta({ id: 'Quota' });
