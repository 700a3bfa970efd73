import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';

/** Where a message of the run is to go that follows from this one, with its own instructions. */
export interface TargetHeaders {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** The headers of a request that belongs to a workflow run, by what they are about. */
export interface RunHeaders {
  readonly runId: string;
  /** Of the run, where the request names it: Unix time in ms. */
  readonly createdMs: number | undefined;
  readonly url: string | undefined;
  /** It starts the run. */
  readonly isInit: boolean;
  /** The run is started by a step of another one. */
  readonly isInvoke: boolean;
  readonly callType: string | undefined;
  /** Whoever starts the run has no SDK, which the workflow itself is to ask for the settings. */
  readonly unknownSdk: boolean;
  /** The SDK's answer to that. */
  readonly triggerBySdk: boolean;
  readonly features: ReadonlySet<string>;
  /** Of this message itself: its body's, and instructions as for any message. */
  readonly own: IncomingHttpHeaders;
  readonly callback: TargetHeaders;
  readonly failure: TargetHeaders;
}

const CONTROL = /^(?:upstash|service)-(.*)$/;
const RUN_ID = /^(upstash|service)-workflow-runid$/i;
/** Printable and of no meaning in a path. */
const RUN_ID_TEXT = /^[A-Za-z0-9_.~:@!$&'()*+,;=-]{1,256}$/;

/** What an SDK's own trigger says of itself: its settings hold for the whole run, and it can do the rest. */
const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig';

/** The headers of a trigger without an SDK as those of one with it. */
export function plainTriggerHeaders(
  given: IncomingHttpHeaders,
  url: string,
  runId: string,
): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = Object.assign(Object.create(null), given);
  const has = (name: string) =>
    [`upstash-${name}`, `service-${name}`].some((one) => headers[one] !== undefined);
  if (!has('workflow-runid')) headers['upstash-workflow-runid'] = runId;
  if (!has('failure-callback')) headers['upstash-failure-callback'] = url;
  headers['upstash-workflow-init'] = 'true';
  headers['upstash-feature-set'] = FEATURES;
  for (const name of ['workflow-url', 'workflow-calltype', 'workflow-invoke', 'workflow-trigger-by-sdk'])
    for (const prefix of ['upstash', 'service']) delete headers[`${prefix}-${name}`];
  return headers;
}

/** Whether a request with headers of these names belongs to a run. */
export function namesRun(names: Iterable<string>): boolean {
  for (const name of names) if (RUN_ID.test(name)) return true;
  return false;
}

/** Reads what names a run and what is asked of its messages. @throws HttpError 412 */
export function readRunHeaders(headers: IncomingHttpHeaders): RunHeaders {
  const own: IncomingHttpHeaders = Object.create(null);
  const run = new Map<string, string>();
  const callback = emptyTarget();
  const failure = emptyTarget();
  for (const name in headers) {
    const control = CONTROL.exec(name)?.[1];
    const value = headers[name];
    if (value === undefined) continue;
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (control === undefined) own[name] = value;
    else if (control.startsWith('workflow-') || control === 'feature-set') run.set(control, text);
    else if (!take(failure, 'failure-callback', control, text) && !take(callback, 'callback', control, text))
      own[`upstash-${control}`] = text;
  }
  const runId = first(run.get('workflow-runid')) ?? '';
  if (!RUN_ID_TEXT.test(runId) || /^\.{1,2}$/.test(runId))
    throw new HttpError(
      'limit_reached',
      'The id of a workflow run has 1 to 256 letters, digits and characters that mean nothing in a path.',
    );
  const createdAt = first(run.get('workflow-createdat'));
  return {
    runId,
    createdMs: createdAt !== undefined && /^\d{1,15}$/.test(createdAt) ? Number(createdAt) : undefined,
    url: run.get('workflow-url'),
    isInit: isTrue(run.get('workflow-init')),
    isInvoke: isTrue(run.get('workflow-invoke')),
    callType: first(run.get('workflow-calltype')),
    unknownSdk: isTrue(run.get('workflow-unknown-sdk')),
    triggerBySdk: isTrue(run.get('workflow-trigger-by-sdk')),
    // comes twice from some
    features: new Set((run.get('feature-set') ?? '').split(',').map((feature) => feature.trim())),
    own,
    callback,
    failure,
  };
}

type MutableTarget = { url: string | undefined; headers: IncomingHttpHeaders };

const emptyTarget = (): MutableTarget => ({ url: undefined, headers: Object.create(null) });

/** Whether the instruction is one for the message behind `name`, and then takes it; what names the run again says nothing new. */
function take(target: MutableTarget, name: string, control: string, value: string): boolean {
  if (control === name) target.url = value;
  else if (control.startsWith(`${name}-`)) {
    const rest = control.slice(name.length + 1);
    // the failure callback of a callback is the run's
    if (!/^(workflow-.*|feature-set|failure-callback.*)$/.test(rest))
      target.headers[`upstash-${rest}`] = value;
  } else return false;
  return true;
}

/** Of a header that came twice. */
function first(value: string | undefined): string | undefined {
  return value?.split(',')[0]?.trim();
}

const isTrue = (value: string | undefined) => first(value)?.toLowerCase() === 'true';
