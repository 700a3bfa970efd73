import {
  callbackBody,
  callbackMessages,
  failureCallbackMessages,
} from '../../../src/services/queue/message/callbacks.js';
import type { AttemptResult } from '../../../src/services/queue/message/decide.js';
import type { CallbackTarget, ClaimedMessage } from '../../../src/services/queue/message/message.js';

const NOW = 1_700_000_000_000;
const target: CallbackTarget = {
  url: 'https://example.com/cb',
  method: 'PUT',
  headers: { 'Content-Type': 'application/json', 'X-Key': 'k' },
  maxRetries: 1,
  timeoutMs: 2_000,
  delayMs: 500,
};
const message: ClaimedMessage = {
  id: 'msg_1',
  prefix: 'Service',
  url: 'https://example.com/in?x',
  method: 'PATCH',
  headers: { 'Content-Type': 'text/plain', 'My-Header': 'v' },
  body: Buffer.from([0xff, 0x00]),
  maxRetries: 3,
  timeoutMs: null,
  notBefore: NOW - 10,
  createdAt: NOW - 20,
  callback: target,
  failureCallback: { ...target, url: 'https://example.com/failed' },
  attempt: 2,
  claims: 3,
  dueAt: NOW,
  queueName: null,
  callerIp: '192.0.2.1',
  callbackOf: null,
  details: { topicName: 'group', endpointName: 'first', scheduleId: 'scd_1', labels: ['a'], retryDelay: '1' },
};
const response: AttemptResult = {
  kind: 'response',
  status: 201,
  headers: { 'content-type': ['text/html'], 'set-cookie': ['a=1', 'b=2'] },
  body: Buffer.from('done'),
};

it("has the contract's fields, spelling included", () => {
  expect(callbackBody(message, response)).toEqual({
    status: 201,
    header: { 'Content-Type': ['text/html'], 'Set-Cookie': ['a=1', 'b=2'] },
    body: Buffer.from('done').toString('base64'),
    retried: 2,
    maxRetries: 3,
    sourceMessasgeId: 'msg_1',
    sourceMessageId: 'msg_1',
    topicName: 'group',
    endpointName: 'first',
    scheduleId: 'scd_1',
    callerIP: '192.0.2.1',
    url: 'https://example.com/in?x',
    method: 'PATCH',
    sourceHeader: { 'Content-Type': ['text/plain'], 'My-Header': ['v'] },
    sourceBody: Buffer.from([0xff, 0x00]).toString('base64'),
    notBefore: String(NOW - 10),
    createdAt: String(NOW - 20),
  });
});

it('tells a failure without response as status 0 with the reason as body', () => {
  const body = callbackBody(message, { kind: 'failure', reason: 'connect ECONNREFUSED' }, '1-2');
  expect(body).toMatchObject({ status: 0, header: {}, dlqId: '1-2' });
  expect(Buffer.from(body.body, 'base64').toString()).toBe('connect ECONNREFUSED');
});

it('makes a message of its own for the callback after every attempt', () => {
  const [callback, ...more] = callbackMessages(message, response, NOW);
  expect(more).toEqual([]);
  expect(callback).toMatchObject({
    url: target.url,
    method: 'PUT',
    prefix: 'Service',
    headers: target.headers,
    maxRetries: 1,
    timeoutMs: 2_000,
    delayMs: 500,
    notBefore: NOW + 500,
    createdAt: NOW,
    callback: null,
    failureCallback: null,
    queueName: null,
    callbackOf: null,
    // found under the same labels, but not retried by the same expression
    details: { topicName: 'group', endpointName: 'first', scheduleId: 'scd_1', labels: ['a'] },
  });
  expect(callback?.id).toMatch(/^msg_/);
  expect(callback?.id).not.toBe(message.id);
  expect(JSON.parse(String(callback?.body))).not.toHaveProperty('dlqId');
});

it('keeps the place of its message in an ordered queue', () => {
  const [callback] = callbackMessages({ ...message, queueName: 'q' }, response, NOW);
  expect(callback).toMatchObject({ queueName: 'q', callbackOf: 'msg_1' });
});

it('has the id of the dead letter in the failure callback', () => {
  const messages = failureCallbackMessages(message, response, '1-2', NOW);
  expect(messages.map(({ url }) => url)).toEqual(['https://example.com/failed']);
  expect(messages.map(({ body }) => JSON.parse(String(body)).dlqId)).toEqual(['1-2']);
});

it('makes none where none was asked for', () => {
  const silent = { ...message, callback: null, failureCallback: null };
  expect(callbackMessages(silent, response, NOW)).toEqual([]);
  expect(failureCallbackMessages(silent, response, '1-2', NOW)).toEqual([]);
});
