import {
  brokerConfig,
  commitBody,
  consumerHeaders,
  fetchBody,
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

test('addresses of brokers need a port', () => {
  const parse = (broker: string) => brokerConfig.safeParse({ clusters: [{ brokers: [broker] }] }).success;
  expect(['kafka:9092', '10.0.0.1:9092', '[::1]:9092'].map(parse)).toEqual([true, true, true]);
  expect(['kafka', 'kafka:', 'http://kafka:9092', 'a:1,b:2'].map(parse)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});
