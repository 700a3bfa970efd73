import type { FlowControl, HeaderMap, Redaction } from '../message/message.js';

export type RunState = 'RUN_STARTED' | 'RUN_SUCCESS' | 'RUN_FAILED' | 'RUN_CANCELED';

/** How a message is delivered to a workflow; kept as JSON. */
export interface Delivery {
  /** What users set, and the content type. */
  readonly headers: HeaderMap;
  readonly maxRetries: number;
  readonly timeoutMs: number | null;
  readonly retryDelay?: string;
  readonly flow?: FlowControl;
  readonly redact?: Redaction;
}

/** What one request asks of the delivery that follows from it. */
export interface AskedDelivery {
  readonly delivery: Delivery;
  /** What of it was asked for; the rest is the default. */
  readonly said: readonly (keyof Delivery)[];
}

/** What a run was started with; kept as JSON. */
export interface RunSettings {
  readonly delivery: Delivery;
  /** Who is told when the run fails. */
  readonly failure: { readonly url: string; readonly delivery: Delivery } | null;
  /** The SDK does not repeat the settings with each step: those of the start hold for all deliveries. */
  readonly holds: boolean;
  /** The SDK fetches a history that is too long for a body. */
  readonly isLazy: boolean;
  /** Whoever answers the first delivery must be a workflow. */
  readonly detects: boolean;
  /** It was started without an SDK, so the first answer must come from one that can do that. */
  readonly needsSdk: boolean;
}

/** The step of another run that waits for the end of this one; kept as JSON. */
export interface Invoker {
  readonly no: string;
  readonly runId: string;
  readonly createdMs: number;
  readonly url: string;
  /** As it was posted. */
  readonly step: Readonly<Record<string, unknown>>;
  readonly asked: AskedDelivery;
}

/** What is known of a failure; kept as JSON. */
export interface RunFailure {
  /** Of the message that failed the run. */
  readonly messageId: string;
  readonly dlqId: string;
  readonly callback: FailureCallback | null;
}

export interface FailureCallback {
  readonly messageId: string;
  readonly url: string;
  readonly state: 'CALLBACK_INPROGRESS' | 'CALLBACK_SUCCESS' | 'CALLBACK_FAIL' | 'CALLBACK_CANCELED';
  readonly status?: number;
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  /** Of the answer, as far as the log keeps one. */
  readonly body?: string;
}

/** One execution of a workflow. */
export interface Run {
  /** In the order of their start: a bigint, as text. */
  readonly no: string;
  /** An id may be used again after its run has ended; with the time of the start it is unique. */
  readonly id: string;
  /** Unix time in ms. */
  readonly createdMs: number;
  /** Where its steps are executed. */
  readonly url: string;
  readonly state: RunState;
  readonly labels: readonly string[];
  readonly callerIp: string | null;
  readonly settings: RunSettings;
  /** The first delivery asks the SDK for the settings. */
  readonly awaitsSdk: boolean;
  readonly invoker: Invoker | null;
  /** Of the next step. */
  readonly nextSeq: number;
  /** Of the bodies of its steps. */
  readonly stepsBytes: number;
  readonly failure: RunFailure | null;
  readonly isOver: boolean;
}

/** What never changes of a run, once its SDK is known. */
export type KnownRun = Omit<Run, 'state' | 'nextSeq' | 'stepsBytes' | 'failure' | 'isOver'>;

/**
 * What a row of the steps is: the payload of the start, a step's result, the plan of a branch, a call of a third party and
 * its answer, a wait, the start of another run.
 */
export type StepKind = 'init' | 'result' | 'plan' | 'toCallback' | 'fromCallback' | 'wait' | 'invoke';

/** Those that the workflow is told. */
export const TOLD_KINDS: readonly StepKind[] = ['init', 'result', 'plan'];

/** What identifies a step in its workflow. */
export interface StepPlace {
  readonly stepId: number;
  /** Of a plan: the step that is to be executed. */
  readonly targetStep: number | null;
  /** Steps that run beside it, with it. */
  readonly concurrent: number;
  readonly name: string;
  readonly type: string;
}

/** A step to be appended to a run. */
export interface NewStep extends StepPlace {
  readonly kind: StepKind;
  readonly messageId: string;
  readonly body: Buffer;
  readonly meta?: unknown;
}

export const INITIAL: StepPlace = {
  stepId: 0,
  targetStep: null,
  concurrent: 1,
  name: 'init',
  type: 'Initial',
};
