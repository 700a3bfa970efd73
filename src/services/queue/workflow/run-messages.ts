import type { HeaderMap, MessageDetails, NewMessage, RunPlace } from '../message/message.js';
import type { AskedDelivery, Delivery, KnownRun, Run } from './run.js';
import type { CallRequest } from './run-request.js';

/** The protocol of the SDKs that is spoken. */
const PROTOCOL = '1';

const EMPTY = Buffer.alloc(0);

/** What stands about a delivery's body beside the steps themselves: ids, keys, brackets. */
export const ENTRY_BYTES = 120;

/** What a message of a run needs beside its delivery. */
export interface MessagePlace {
  readonly id: string;
  readonly seq: number;
  readonly delayMs: number;
  /** Unix time in ms. */
  readonly now: number;
}

/** The delivery of a later message: that of the start, where it holds, with what the request asks. */
export function deliveryIn({ settings }: KnownRun, { delivery, said }: AskedDelivery): Delivery {
  if (!settings.holds) return delivery;
  const { 'Content-Type': _, ...headers } = delivery.headers;
  const asked = Object.fromEntries(said.map((key) => [key, delivery[key]]));
  return { ...settings.delivery, ...asked, headers: { ...settings.delivery.headers, ...headers } };
}

/** Takes the steps to the workflow, up to its own. */
export function stepMessage(
  run: KnownRun & Pick<Run, 'stepsBytes'>,
  delivery: Delivery,
  place: MessagePlace,
  lazyBytes: number,
): NewMessage {
  const bytes = bodyBytes(run.stepsBytes, place.seq + 1);
  return messageOf(run, delivery, place, {
    role: 'step',
    // the empty body stands for one that is to be fetched
    bytes: run.settings.isLazy && bytes > lazyBytes ? 0 : bytes,
    headers: {
      ...runHeaders(run, place.seq === 0),
      'Upstash-Workflow-Sdk-Version': PROTOCOL,
      ...(run.awaitsSdk ? { 'Upstash-Workflow-Unknown-Sdk': 'true' } : {}),
    },
  });
}

const bodyBytes = (stepsBytes: number, count: number) => Math.ceil(stepsBytes / 3) * 4 + count * ENTRY_BYTES;

/** Calls a third party. What is not to be seen of the run is not of its calls, unless they say something else. */
export function callMessage(run: Run, call: CallRequest, place: MessagePlace): NewMessage {
  const redact = call.delivery.redact ?? run.settings.delivery.redact;
  const delivery = redact === undefined ? call.delivery : { ...call.delivery, redact };
  const message = messageOf(run, delivery, place, { role: 'call', bytes: 0, headers: {} });
  return { ...message, url: call.url, method: call.method, headers: call.delivery.headers, body: call.body };
}

/** Brings a third party's answer, which is the step `seq`, to the workflow, whose own headers come with it as with a step. */
export function callbackMessage(
  run: Run,
  asked: AskedDelivery,
  place: MessagePlace,
  bytes: number,
): NewMessage {
  return messageOf(run, deliveryIn(run, asked), place, {
    role: 'callback',
    bytes,
    headers: { ...runHeaders(run, false), 'Content-Type': 'application/json' },
  });
}

/**
 * Tells whoever is to know that the run has failed. The body holds the payload and the headers of the run: where something
 * of these is not to be seen, it is not either.
 */
export function failureMessage(run: Run, body: Buffer, place: MessagePlace): NewMessage | undefined {
  const { failure, delivery: ofRun } = run.settings;
  if (failure === null) return undefined;
  const { redact = ofRun.redact && { body: true, headers: ofRun.redact.headers } } = failure.delivery;
  const delivery = redact === undefined ? failure.delivery : { ...failure.delivery, redact };
  const message = messageOf(run, delivery, place, {
    role: 'failure',
    bytes: 0,
    headers: {
      ...runHeaders(run, false),
      'Content-Type': 'application/json',
      'Upstash-Workflow-Is-Failure': 'true',
      'Upstash-Workflow-Failure-Callback': 'true',
    },
  });
  return { ...message, url: failure.url, body };
}

/** Ends a wait, unless somebody else has: it is delivered to nobody. */
export function timerMessage(run: Run, place: MessagePlace): NewMessage {
  const delivery = { headers: {}, maxRetries: 0, timeoutMs: null };
  return messageOf(run, delivery, place, { role: 'timer', bytes: 0, headers: {} });
}

/** What tells a workflow which run it is. */
function runHeaders({ id, url, createdMs, labels }: KnownRun, isInit: boolean): HeaderMap {
  return {
    'Upstash-Workflow-Runid': id,
    'Upstash-Workflow-Init': String(isInit),
    'Upstash-Workflow-Url': url,
    'Upstash-Workflow-Createdat': String(createdMs),
    ...(labels.length === 0 ? {} : { 'Upstash-Label': labels.join(',') }),
  };
}

function messageOf(
  run: KnownRun,
  delivery: Delivery,
  { id, seq, delayMs, now }: MessagePlace,
  { role, bytes, headers }: Pick<RunPlace, 'role' | 'bytes'> & { headers: HeaderMap },
): NewMessage {
  return {
    id,
    prefix: 'Upstash',
    url: run.url,
    method: 'POST',
    headers: { ...delivery.headers, ...headers },
    body: EMPTY,
    maxRetries: delivery.maxRetries,
    timeoutMs: delivery.timeoutMs,
    notBefore: now + delayMs,
    createdAt: now,
    callback: null,
    failureCallback: null,
    queueName: null,
    callerIp: run.callerIp,
    callbackOf: null,
    details: detailsOf(run, delivery),
    delayMs,
    deduplicationKey: null,
    run: { no: run.no, seq, role, bytes },
  };
}

function detailsOf({ labels }: KnownRun, { flow, retryDelay, redact }: Delivery): MessageDetails {
  return {
    ...(labels.length === 0 ? {} : { labels }),
    ...(flow === undefined ? {} : { flow }),
    ...(retryDelay === undefined ? {} : { retryDelay }),
    ...(redact === undefined ? {} : { redact }),
  };
}
