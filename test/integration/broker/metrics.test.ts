import { brokerUnderTest } from '../../support/broker/broker.js';
import { eventually } from '../../support/eventually.js';

const { kafka, call, url } = brokerUnderTest();

async function metric(name: string, labels = ''): Promise<number | undefined> {
  const text = await (await fetch(`${url()}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name}{`) && one.includes(labels));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}

test('instances, joins, lag by group, and how many records go together', async () => {
  const topic = await kafka.topic('metrics', 2);
  const group = kafka.name('metrics');
  const inputs = Array.from({ length: 600 }, (_, i) => ({ value: `v${i}`, partition: 0 }));
  await call(`/produce/${topic}`, inputs);
  const records = (await metric('portico_broker_produced_records_total')) as number;
  const sends = (await metric('portico_broker_produce_sends_total')) as number;
  // one send, or a few on a busy machine: a request is read in slices, and a new partition without a leader is asked again
  expect(records).toBeGreaterThanOrEqual(600);
  expect(sends).toBeGreaterThan(0);
  expect(records / sends).toBeGreaterThan(50);
  expect(await metric('portico_broker_instances')).toBe(0);
  const headers = { 'Kafka-Auto-Offset-Reset': 'earliest' };
  const { body } = await call(`/consume/${group}/i/${topic}?timeout=30000`, undefined, { headers });
  expect(body).toHaveLength(500);
  await eventually(async () => expect(await metric('portico_broker_consumed_records_total')).toBe(500));
  expect(await metric('portico_broker_produce_failed_records_total')).toBe(0);
  expect(await metric('portico_broker_commit_failures_total')).toBe(0);
  expect(await metric('portico_broker_instances', 'cluster="default"')).toBe(1);
  expect(await metric('portico_broker_joins_total')).toBe(1);
  expect(await metric('portico_broker_group_lag_records', `group="${group}"`)).toBe(100);
  await call(`/delete-consumer/${group}/i`, undefined, { method: 'POST' });
  expect(await metric('portico_broker_instances')).toBe(0);
  expect(await metric('portico_broker_group_lag_records', `group="${group}"`)).toBeUndefined();
});
