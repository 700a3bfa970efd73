import type { LoggedMessage, LoggedStep, LoggedWait, RunRecord } from './run-record.js';

export type ShownState = 'STEP_PROGRESS' | 'STEP_SUCCESS' | 'STEP_RETRY' | 'STEP_FAILED' | 'STEP_CANCELED';

/** One step of a workflow, with all that was stored of it. */
export interface ShownStep {
  /** What began it. */
  readonly first: LoggedStep;
  /** 0: the start of the run. */
  readonly stepId: number;
  readonly state: ShownState;
  readonly result: LoggedStep | undefined;
  readonly call: LoggedStep | undefined;
  /** The call's own, as long as it is kept. */
  readonly callMessage: LoggedMessage | undefined;
  /** The third party's answer to the call. */
  readonly answer: LoggedStep | undefined;
  readonly invocation: LoggedStep | undefined;
  readonly wait: LoggedWait | undefined;
  /** What is under way for it, or failed. */
  readonly message: LoggedMessage | undefined;
}

export type StepGroup =
  | { readonly type: 'sequential' | 'parallel'; readonly steps: readonly ShownStep[] }
  | { readonly type: 'next'; readonly messages: readonly LoggedMessage[] };

/** The rows of one step. */
interface StepRows {
  readonly stepId: number;
  readonly rows: LoggedStep[];
}

/**
 * A run's steps as the log groups them: one by one, beside each other by their plan, and at the end the deliveries that
 * execute what comes next, or failed at it.
 */
export function groupsOf(record: RunRecord): StepGroup[] {
  const { run, messages, waits } = record;
  const ofSteps = messages.filter(({ role }) => role !== 'failure');
  const bySeq = new Map(ofSteps.map((message) => [message.seq, message]));
  const waiting = new Map(waits.map((wait) => [wait.stepId, wait]));
  const shown = new Set<LoggedMessage>();
  const groups: StepGroup[] = rowGroups(record.steps).map(({ type, steps }) => ({
    type,
    steps: steps.map((step) => {
      const view = shownStep(step, bySeq, waiting, run.isOver);
      if (view.message !== undefined) shown.add(view.message);
      return view;
    }),
  }));
  const next = messages.filter(
    (message) => message.role === 'step' && message.state !== 'DELIVERED' && !shown.has(message),
  );
  // what a run that has come to its end still had to deliver says nothing of it
  if (next.length > 0 && run.state !== 'RUN_SUCCESS') groups.push({ type: 'next', messages: next });
  return groups;
}

function rowGroups(rows: readonly LoggedStep[]): { type: 'sequential' | 'parallel'; steps: StepRows[] }[] {
  const groups: { type: 'sequential' | 'parallel'; steps: StepRows[] }[] = [];
  const byId = new Map<number, StepRows>();
  let lastPlan: LoggedStep | undefined;
  for (const row of rows) {
    const stepId = row.targetStep ?? row.stepId;
    const known = byId.get(stepId);
    if (known !== undefined) {
      known.rows.push(row);
      continue;
    }
    const step = { stepId, rows: [row] };
    byId.set(stepId, step);
    const group = groups.at(-1);
    // the plans of a group are posted together
    const isSameGroup =
      row.kind === 'plan' && lastPlan?.seq === row.seq - 1 && (group?.steps.length ?? 0) < row.concurrent;
    if (isSameGroup) group?.steps.push(step);
    else groups.push({ type: row.kind === 'plan' ? 'parallel' : 'sequential', steps: [step] });
    if (row.kind === 'plan') lastPlan = row;
  }
  return groups;
}

function shownStep(
  { stepId, rows }: StepRows,
  messages: ReadonlyMap<number, LoggedMessage>,
  waits: ReadonlyMap<number, LoggedWait>,
  isOver: boolean,
): ShownStep {
  const of = (kind: LoggedStep['kind']) => rows.find((row) => row.kind === kind);
  const [result, call, answer] = [of('init') ?? of('result'), of('toCallback'), of('fromCallback')];
  const message = messageOf(rows, result, messages);
  return {
    first: rows[0] as LoggedStep,
    stepId,
    state: stateOf(result, message, isOver),
    result,
    call,
    callMessage: call && messages.get(call.seq),
    answer,
    invocation: of('invoke'),
    wait: waits.get(stepId) ?? waitOf(of('wait')),
    message,
  };
}

/** The message on which a step depends: its plan's, its call's or what brings the answer; of a sleep the one that ends it. */
function messageOf(
  rows: readonly LoggedStep[],
  result: LoggedStep | undefined,
  messages: ReadonlyMap<number, LoggedMessage>,
): LoggedMessage | undefined {
  if (result !== undefined) {
    const sleep = result.type.startsWith('Sleep') ? messages.get(result.seq) : undefined;
    return sleep?.claims === 0 ? sleep : undefined;
  }
  for (const { seq } of rows.toReversed()) {
    const message = messages.get(seq);
    if (message !== undefined && message.state !== 'DELIVERED') return message;
  }
  return undefined;
}

function stateOf(
  result: LoggedStep | undefined,
  message: LoggedMessage | undefined,
  isOver: boolean,
): ShownState {
  if (message !== undefined && !(message.role === 'call' && message.state === 'FAILED'))
    return messageState(message);
  if (result !== undefined) return 'STEP_SUCCESS';
  return isOver ? 'STEP_CANCELED' : 'STEP_PROGRESS';
}

export function messageState({ state, attempt }: LoggedMessage): ShownState {
  if (state === 'CANCELED') return 'STEP_CANCELED';
  if (state === 'FAILED' || state === 'FAILING') return 'STEP_FAILED';
  return attempt > 0 ? 'STEP_RETRY' : 'STEP_PROGRESS';
}

/** What is kept of a wait that is over. */
function waitOf(step: LoggedStep | undefined): LoggedWait | undefined {
  const { event, deadlineMs } = (step?.meta ?? {}) as { event?: unknown; deadlineMs?: unknown };
  if (step === undefined || typeof event !== 'string') return undefined;
  return { stepId: step.stepId, event, deadlineMs: Number(deadlineMs) };
}
