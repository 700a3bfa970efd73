import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import type { BrokerRecord } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';

// what changes under a consumer: partitions, topics, the log itself, the other members of its group
const { kafka, call } = brokerUnderTest();
const reset = (to: string, more = {}) => ({ headers: { 'Kafka-Auto-Offset-Reset': to, ...more } });
const consume = (group: string, instance: string, topics: string[], options = {}, timeout = 30_000) =>
  call(`/consume/${group}/${instance}`, { topics, timeout }, options);
const values = ({ body }: { body: BrokerRecord[] }) => body.map(({ value }) => value);
const produce = (topic: string, list: string[], partition = 0) =>
  call(
    `/produce/${topic}`,
    list.map((value) => ({ value, partition })),
  );
const remove = (group: string, instance: string) =>
  call(`/delete-consumer/${group}/${instance}`, undefined, { method: 'POST' });

test('records of partitions that are added later are delivered', async () => {
  const topic = await kafka.topic('grows', 1);
  const group = kafka.name('grows');
  await produce(topic, ['a']);
  expect(values(await consume(group, 'i', [topic], reset('earliest')))).toEqual(['a']);
  await kafka.addPartitions(topic, 3);
  await eventually(async () => expect((await produce(topic, ['b'], 2)).status).toBe(200));
  await eventually(async () => {
    expect(values(await consume(group, 'i', [topic], {}, 500))).toEqual(['b']);
  });
});

test('a call that waits for long notices partitions that are added meanwhile', async () => {
  const topic = await kafka.topic('grows-meanwhile', 1);
  const group = kafka.name('grows-meanwhile');
  await eventually(async () => {
    const { headers } = await consume(group, 'i', [topic], reset('earliest'), 500);
    expect(headers.get('broker-consumer-state')).toBe('joined');
  });
  const waiting = consume(group, 'i', [topic], {}, 60_000);
  await kafka.addPartitions(topic, 2);
  await eventually(async () => expect((await produce(topic, ['b'], 1)).status).toBe(200));
  expect(values(await waiting)).toEqual(['b']);
});

test('a topic that is deleted is 404, and the others go on', async () => {
  const [kept, doomed] = [await kafka.topic('kept'), await kafka.topic('doomed')];
  const group = kafka.name('doomed');
  await consume(group, 'i', [kept, doomed], reset('earliest'), 1_500);
  await kafka.deleteTopic(doomed);
  await produce(kept, ['x']);
  // until the gateway has noticed it serves what it can
  const seen: string[] = [];
  await eventually(async () => {
    const answer = await consume(group, 'i', [kept, doomed], {}, 300);
    if (answer.status === 200) seen.push(...values(answer));
    expect(answer.status).toBe(404);
  });
  seen.push(...values(await consume(group, 'i', [kept], {}, 300)));
  expect(seen).toContain('x');
  await produce(kept, ['y']);
  expect(values(await consume(group, 'i', [kept]))).toEqual(['y']);
});

test.each([
  ['earliest', 3],
  ['latest', 6],
  ['none', undefined],
])('committed offsets that the log does not hold any more: %s', async (to, next) => {
  const topic = await kafka.topic(`truncated-${to}`);
  const group = kafka.name(`truncated-${to}`);
  await produce(topic, ['0', '1', '2', '3', '4', '5']);
  await consume(group, 'i', [topic], reset('earliest', { 'Kafka-Enable-Auto-Commit': 'false' }));
  await call(`/commit/${group}/i`, { topic, partition: 0, offset: 1 });
  await remove(group, 'i');
  await kafka.truncate(topic, 3);
  const answer = await consume(group, 'i', [topic], reset(to), 2_000);
  if (next === undefined) {
    expect(answer).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/offset reset is none/) },
    });
    return;
  }
  if (next === 6) await produce(topic, ['6']);
  const seen = [...values(answer), ...(next === 6 ? values(await consume(group, 'i', [topic])) : [])];
  expect(seen[0]).toBe(String(next));
});

test('a commit while the group rebalances waits for it', async () => {
  const topic = await kafka.topic('rebalance', 4);
  const group = kafka.name('rebalance');
  await consume(group, 'a', [topic], reset('earliest'), 1_500);
  const joins = ['b', 'c', 'd'].map((instance) =>
    consume(group, instance, [topic], reset('earliest'), 2_500),
  );
  const commits = Array.from({ length: 20 }, (_, i) =>
    call<Failure>(`/commit/${group}/a`, { topic, partition: i % 4, offset: 0 }),
  );
  // taken, or the partition is another's by then
  for (const { status } of await Promise.all(commits)) expect([200, 409]).toContain(status);
  await Promise.all(joins);
  await eventually(async () => {
    const statuses = await Promise.all(
      ['a', 'b', 'c', 'd'].map(
        async (instance) =>
          (await call(`/commit/${group}/${instance}`, undefined, { method: 'POST' })).status,
      ),
    );
    expect(statuses).toEqual([200, 200, 200, 200]);
  });
});

test('partitions that stay with a member go on where they were: nothing comes twice', async () => {
  const topic = await kafka.topic('stay', 4);
  const group = kafka.name('stay');
  const byHand = reset('earliest', { 'Kafka-Enable-Auto-Commit': 'false' });
  for (let partition = 0; partition < 4; partition++) await produce(topic, [`p${partition}`], partition);
  const first: string[] = [];
  await eventually(async () => {
    first.push(...values(await consume(group, 'a', [topic], byHand, 500)));
    expect(first).toHaveLength(4);
  });
  await consume(group, 'b', [topic], byHand, 3_000);
  const again = [...values(await consume(group, 'a', [topic], {}, 1_000))];
  expect(again).toEqual([]);
});

test('instance and group names that are empty, long or strange', async () => {
  const topic = await kafka.topic('names');
  for (const [path, status] of [
    [`/consume//i/${topic}`, 404],
    [`/consume/${'g'.repeat(256)}/i/${topic}`, 400],
    [`/consume/g/${'i'.repeat(256)}/${topic}`, 400],
    [`/consume/g/i%00/${topic}`, 400],
    [`/consume/g/%E0%A4%A/${topic}`, 400],
  ] as const)
    expect({ path, status: (await call(path)).status }).toEqual({ path, status });
  await produce(topic, ['x']);
  const strange = encodeURIComponent(`${kafka.name('s')}/ä ☃ ${'z'.repeat(200)}`);
  const path = `/consume/${strange}/${encodeURIComponent('☃/..')}/${topic}?timeout=30000`;
  expect(values(await call(path, undefined, reset('earliest')))).toEqual(['x']);
});

test('a group that consumers of another kind are using is 409, and free again when they have left', async () => {
  const topic = await kafka.topic('foreign');
  const group = kafka.name('foreign');
  const leave = await kafka.otherMember(group, topic);
  const refused = await consume(group, 'i', [topic], reset('earliest'));
  expect(refused).toMatchObject({ status: 409, body: { error: expect.stringMatching(/another kind/) } });
  await leave();
  await produce(topic, ['x']);
  expect(values(await consume(group, 'i', [topic], reset('earliest')))).toEqual(['x']);
});
