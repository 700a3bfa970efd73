import {
  commitBody,
  consumerHeaders,
  fetchBody,
  recordsBody,
  timestampParams,
  topicParams,
} from '../../../src/services/broker/schemas.js';

test.each([[undefined], [null], [{}], [[]]])('a commit of %j means what was delivered', (body) => {
  expect(commitBody.parse(body)).toEqual([]);
});

test('a commit of one and of several', () => {
  const one = { topic: 't', partition: 0, offset: 3 };
  expect(commitBody.parse(one)).toEqual([one]);
  expect(commitBody.parse([one, one])).toEqual([one, one]);
  expect(commitBody.safeParse([{ topic: 't' }]).success).toBe(false);
});

test('headers of a consume have the defaults of the contract', () => {
  expect(consumerHeaders.parse({})).toEqual({
    'broker-enable-auto-commit': true,
    'broker-auto-commit-interval': 5_000,
    'broker-auto-offset-reset': 'latest',
    'broker-session-timeout-ms': undefined,
    'broker-redeliver': undefined,
    'broker-acknowledge': undefined,
  });
  expect(consumerHeaders.parse({ 'broker-session-timeout-ms': '6000' })).toMatchObject({
    'broker-session-timeout-ms': 6_000,
  });
});

test('an offset that a fetch leaves out is 0', () => {
  expect(
    fetchBody.parse({ topicPartitionOffsets: [{ topic: 't', partition: 1 }] }).topicPartitionOffsets,
  ).toEqual([{ topic: 't', partition: 1, offset: 0 }]);
});

test.each(['', '.', '..', 'a b', 'ä', 'a'.repeat(250)])('%j is no topic', (topic) => {
  expect(topicParams.safeParse({ topic }).success).toBe(false);
});

test.each(['0', '1700000000000', 'earliest', 'latest'])('%s is a point in a log', (timestamp) => {
  const expected = /^\d/.test(timestamp) ? Number(timestamp) : timestamp;
  expect(timestampParams.parse({ timestamp })).toEqual({ timestamp: expected });
});

test.each(['', '-1', '1.5', 'first', 'Latest', '1e3', '9'.repeat(16)])('%j is none', (timestamp) => {
  expect(timestampParams.safeParse({ timestamp }).success).toBe(false);
});

test.each([
  { value: '\ud800' },
  { value: 'x', key: 'a\udc00' },
  { value: 'x', headers: [{ key: '\ud800', value: '' }] },
  { value: 'x', headers: [{ key: '', value: '\udfff' }] },
])('half a surrogate pair cannot be stored: %j', (record) => {
  expect(recordsBody.safeParse(record).success).toBe(false);
  expect(recordsBody.safeParse({ value: '\u{1f600}' }).success).toBe(true);
});
