import { AddressGuard } from '../../../src/lib/outbound/address-guard.js';
import { Controls } from '../../../src/services/queue/intake/control-headers.js';
import { readPublishOptions } from '../../../src/services/queue/intake/publish-options.js';

const NOW = 1_700_000_000_000;
const environment = {
  limits: { maxRetries: 5, maxDelay: 86_400 },
  guard: new AddressGuard([]),
  now: NOW,
};

function read(headers: Record<string, string>, query: Record<string, string> = {}) {
  const controls = new Controls(headers, new Map(Object.entries(query)));
  return { ...readPublishOptions(controls, headers, environment), prefix: controls.prefix };
}

it('has defaults for everything', () => {
  expect(read({ host: 'portico', authorization: 'Bearer t' })).toEqual({
    method: 'POST',
    headers: {},
    delayMs: 0,
    maxRetries: 3,
    timeoutMs: null,
    callback: null,
    failureCallback: null,
    retryDelay: undefined,
    labels: [],
    flow: undefined,
    redact: undefined,
    deduplication: undefined,
    prefix: undefined,
  });
});

it('reads the same instructions under both prefixes, in headers and in the query', () => {
  const wanted = {
    method: 'PUT',
    delayMs: 90_000,
    maxRetries: 2,
    timeoutMs: 5_000,
    headers: { 'My-Header': 'v' },
  };
  const of = (prefix: string) => ({
    [`${prefix}-method`]: 'put',
    [`${prefix}-delay`]: '1m30s',
    [`${prefix}-retries`]: '2',
    [`${prefix}-timeout`]: '5',
    [`${prefix}-forward-my-header`]: 'v',
  });
  expect(read(of('upstash'))).toMatchObject({ ...wanted, prefix: 'Upstash' });
  expect(read(of('service'))).toMatchObject({ ...wanted, prefix: 'Service' });
  expect(read({}, of('upstash'))).toMatchObject({ ...wanted, prefix: 'Upstash' });
});

it('lets a header win over the query, and the contract name over the alias', () => {
  expect(read({ 'upstash-retries': '1' }, { 'service-retries': '2' }).maxRetries).toBe(1);
  expect(read({ 'upstash-retries': '1', 'service-retries': '4' }).maxRetries).toBe(4);
});

it('lets not-before win over a delay; one in the past means now', () => {
  expect(read({ 'upstash-not-before': String(NOW / 1_000 + 10), 'upstash-delay': '1h' }).delayMs).toBe(
    10_000,
  );
  expect(read({ 'upstash-not-before': '1' }).delayMs).toBe(0);
});

it('passes on content type and encoding, what is marked for it, and never what belongs to a connection', () => {
  const { headers } = read({
    'content-type': 'text/plain',
    'content-encoding': 'gzip',
    'x-own': 'stays here',
    'upstash-forward-x-own': 'goes',
    'upstash-forward-host': 'forged',
    'upstash-forward-content-length': '1',
    'upstash-forward-transfer-encoding': 'chunked',
    'upstash-forward-connection': 'close',
    'upstash-forward-proxy-authorization': 'x',
    'upstash-telemetry-sdk': 'upstash-qstash-js@2',
  });
  expect(headers).toEqual({ 'Content-Type': 'text/plain', 'Content-Encoding': 'gzip', 'X-Own': 'goes' });
});

it('forwards all headers when asked to, but none that open doors or tell the way', () => {
  const { headers } = read({
    'upstash-header-forward': 'True',
    'upstash-forward-x-a': 'marked wins',
    'x-a': '1',
    'x-github-event': 'push',
    authorization: 'Bearer portico',
    cookie: 'c=1',
    host: 'portico',
    connection: 'keep-alive',
    'x-forwarded-for': '1.2.3.4',
    'x-real-ip': '1.2.3.4',
    forwarded: 'for=1.2.3.4',
    'proxy-authorization': 'x',
    'service-signature': 'of somebody else',
    'content-length': '3',
  });
  expect(headers).toEqual({ 'X-A': 'marked wins', 'X-Github-Event': 'push' });
});

it('reads callbacks with their own options; their retries default to those of the message', () => {
  const { callback, failureCallback } = read({
    'upstash-retries': '2',
    'upstash-callback': 'https://example.com/done?x=1',
    'upstash-callback-method': 'PATCH',
    'upstash-callback-delay': '30',
    'upstash-callback-timeout': '5s',
    'upstash-callback-forward-x-key': 'k',
    'upstash-callback-forward-content-type': 'application/problem+json',
    'upstash-failure-callback': 'https://example.com/failed',
    'upstash-failure-callback-retries': '0',
  });
  expect(callback).toEqual({
    url: 'https://example.com/done?x=1',
    method: 'PATCH',
    headers: { 'Content-Type': 'application/problem+json', 'X-Key': 'k' },
    maxRetries: 2,
    timeoutMs: 5_000,
    delayMs: 30_000,
  });
  expect(failureCallback).toEqual({
    url: 'https://example.com/failed',
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    maxRetries: 0,
    timeoutMs: null,
    delayMs: 0,
  });
});

it.each([
  ['upstash-method', 'HEAD', /expected one of GET, POST/],
  ['upstash-method', '', /expected one of/],
  ['upstash-retries', '6', /6 retries are more than the limit of 5/],
  ['upstash-retries', '-1', /whole number/],
  ['upstash-retries', '1.5', /whole number/],
  ['upstash-retries', 'many', /whole number/],
  ['upstash-delay', 'soon', /expected a duration/],
  ['upstash-delay', '-5s', /expected a duration/],
  ['upstash-delay', '', /expected a duration/],
  ['upstash-delay', '86401', /longer than the limit of 86400 s/],
  ['upstash-delay', '99999999999d', /expected a duration|longer than/],
  ['upstash-not-before', String(NOW / 1_000 + 86_401), /longer than the limit/],
  ['upstash-not-before', '2026-01-01', /Unix time in seconds/],
  ['upstash-timeout', '0', /above zero/],
  ['upstash-timeout', 'x', /above zero/],
  ['upstash-header-forward', 'yes', /true or false/],
  ['upstash-callback', 'not a url', /the callback/],
  ['upstash-callback', 'ftp://example.com', /scheme ftp/],
  ['upstash-failure-callback', 'http://169.254.169.254/latest', /169\.254\.169\.254 is not a public address/],
  ['upstash-callback-retries', '1', /needs a callback URL/],
  ['upstash-failure-callback-forward-x', '1', /needs a failure-callback URL/],
  ['upstash-retry-delay', 'eval(1)', /"eval"/],
  ['upstash-callback-retry-delay', '1', /needs a callback URL/],
  ['upstash-deduplication-id', '', /1 to 1024 characters/],
  ['upstash-content-based-deduplication', 'yes', /true or false/],
  ['upstash-flow-control-key', 'x', /needs a flow-control value/],
  ['upstash-flow-control-value', 'rate=1', /needs a flow-control key/],
  ['upstash-redact-fields', 'url', /expected body, header/],
  ['upstash-label', ' , ', /1 to 50 labels/],
  ['upstash-callback-cron', 'x', /not supported/],
  ['service-dealy', '1s', /service-dealy: is not supported/],
])('refuses %s: %s, naming the header', (name, value, reason) => {
  expect(() => read({ [name]: value })).toThrow(reason);
  expect(() => read({}, { [name]: value })).toThrow(reason);
});

it('reads labels, flow control, redaction, deduplication and the pause between retries', () => {
  expect(
    read({
      'upstash-label': 'a, b,a',
      'upstash-flow-control-key': 'key/1',
      'upstash-flow-control-value': 'parallelism=5, rate=10,period=1m',
      'upstash-redact-fields': 'body, header[Authorization]',
      'upstash-deduplication-id': 'x y',
      'upstash-retry-delay': 'pow(2, retried) * 1000',
    }),
  ).toMatchObject({
    labels: ['a', 'b'],
    flow: { key: 'key/1', parallelism: 5, rate: 10, period: 60 },
    redact: { body: true, headers: ['authorization'] },
    deduplication: { id: 'x y' },
    retryDelay: 'pow(2, retried) * 1000',
  });
  expect(read({ 'upstash-content-based-deduplication': 'True' }).deduplication).toBe('content');
});

it.each([
  ['parallelism=0', /parallelism: expected a whole number/],
  ['rate=x', /rate: expected a whole number/],
  ['rate=1, period=8d', /period: expected a duration/],
  ['period=1m', /neither parallelism nor rate/],
  ['burst=3', /expected parallelism=N/],
])('refuses the flow-control value %s', (value, reason) => {
  expect(() => read({ 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': value })).toThrow(
    reason,
  );
});

it('refuses a header that would break out of its line', () => {
  expect(() => read({}, { 'upstash-forward-x': 'a\r\nEvil: 1' })).toThrow(/cannot stand in a header/);
  expect(() => read({}, { 'upstash-label': 'a\0' })).toThrow(/cannot stand in a header/);
  expect(() => read({}, { 'upstash-forward-bad name': 'a' })).toThrow(/cannot stand in a header/);
});
