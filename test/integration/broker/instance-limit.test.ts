import { brokerUnderTest } from '../../support/broker.js';

const { kafka, call } = brokerUnderTest();

test('there are at most as many instances as partitions of all topics', async () => {
  const topic = await kafka.topic('limit', 2);
  const counts = (await call<Record<string, number>>('/topics')).body;
  const partitions = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const consume = (instance: string) =>
    call<{ error: string; status: number }>(`/consume/${kafka.name('g')}/${instance}/${topic}?timeout=0`);
  for (let i = 0; i < partitions; i++) expect((await consume(`i${i}`)).status).toBe(200);
  const refused = await consume('one more');
  expect(refused).toMatchObject({ status: 409, body: { status: 409 } });
  expect(refused.body.error).toContain(`(${partitions})`);
  expect((await consume('i0')).status).toBe(200);
  await call(`/delete-consumer/${kafka.name('g')}/i0`, undefined, { method: 'POST' });
  expect((await consume('one more')).status).toBe(200);
});
