import { brokerSettings } from '../../../src/services/broker/settings.js';

test('addresses of brokers need a port', () => {
  const parse = (broker: string) => brokerSettings.safeParse({ clusters: [{ brokers: [broker] }] }).success;
  expect(['kafka:9092', '10.0.0.1:9092', '[::1]:9092'].map(parse)).toEqual([true, true, true]);
  expect(['kafka', 'kafka:', 'http://kafka:9092', 'a:1,b:2'].map(parse)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});
