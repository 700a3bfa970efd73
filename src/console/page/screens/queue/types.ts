type HeaderLists = Readonly<Record<string, readonly string[]>>;

/** A message as the service shows it, in its log, as a dead letter or by itself. */
export interface Message {
  readonly messageId: string;
  readonly url: string;
  readonly topicName?: string;
  readonly method: string;
  readonly header: HeaderLists;
  readonly body?: string;
  readonly bodyBase64?: string;
  readonly maxRetries: number;
  readonly createdAt: number;
  readonly callback?: string;
  readonly failureCallback?: string;
  readonly queueName?: string;
  readonly scheduleId?: string;
  readonly label?: string;
  readonly flowControlKey?: string;
}

/** What happened to a message at one time; bodies are base64. */
export interface LogEntry extends Message {
  readonly time: number;
  readonly state: string;
  readonly nextDeliveryTime?: number;
  readonly error?: string;
  readonly responseStatus?: number;
  readonly responseBody?: string;
}

export interface DeadLetter extends Message {
  readonly dlqId: string;
  readonly responseStatus: number;
  readonly responseHeader: HeaderLists;
  readonly responseBody?: string;
  readonly responseBodyBase64?: string;
  readonly error?: string;
  readonly workflowRunId?: string;
}

export interface Schedule {
  readonly scheduleId: string;
  readonly cron: string;
  readonly destination: string;
  readonly method: string;
  readonly body?: string;
  readonly retries: number;
  readonly isPaused: boolean;
  readonly queueName?: string;
  readonly createdAt: number;
  readonly lastScheduleTime?: number;
  readonly nextScheduleTime?: number;
  readonly lastScheduleStates?: Readonly<Record<string, string>>;
}

export interface UrlGroup {
  readonly name: string;
  readonly createdAt: number;
  readonly endpoints: readonly { readonly name?: string; readonly url: string }[];
}

export interface OrderedQueue {
  readonly name: string;
  readonly createdAt: number;
  readonly parallelism: number;
  readonly paused: boolean;
  readonly lag: number;
}

export interface FlowControl {
  readonly flowControlKey: string;
  readonly waitListSize: number;
  readonly parallelismMax?: number;
  readonly parallelismCount: number;
  readonly rateMax?: number;
  readonly rateCount: number;
  readonly ratePeriod: number;
  readonly isPaused: boolean;
}

export interface Destination {
  readonly destination: string;
  readonly circuit: 'closed' | 'open' | 'half-open';
  readonly failures: number;
  readonly active: number;
  readonly waiting: number;
  readonly turnedAway: number;
  readonly nextProbeAt?: number;
}
