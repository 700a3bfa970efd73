import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** What a scrape shows of messages that are not done. */
const names = queueNamespace();
let gateway: RunningGateway;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver((_, response) => response.writeHead(500).end());
  await startNew();
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await names.remove();
});

async function startNew(): Promise<void> {
  gateway = await startGateway({ queue: names.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200), 60_000);
}

const call = (method: string, path: string, body?: object) =>
  fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const metrics = async () => {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return (name: string) => {
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.split(' ')[1]);
  };
};

it('messages by what they wait for, the oldest that is due, dead letters', async () => {
  const hour = { 'upstash-delay': '1h' };
  const ids: string[] = [];
  for (let i = 0; i < 3; i++)
    ids.push((await publish(gateway, `${receiver.url}/late`, hour)).body.messageId as string);
  await call('POST', '/v2/queues', { queueName: 'held', parallelism: 1 });
  await call('POST', '/v2/queues/held/pause');
  for (let i = 0; i < 2; i++) await call('POST', `/v2/enqueue/held/${receiver.url}/held`);
  await publish(gateway, `${receiver.url}/dead`, { 'upstash-retries': '0' });
  await eventually(async () => {
    const reply = (await (await call('GET', '/v2/dlq')).json()) as { messages: unknown[] };
    expect(reply.messages).toHaveLength(1);
  });
  await gateway.stop();
  // as one whose ticket is lost, or for which there was no place
  await names.query(
    `update $schema.messages set due_at = now() - interval '100 s', sweep_at = 'infinity' where id = $1`,
    [ids[0]],
  );
  await startNew();
  await eventually(async () => {
    const value = await metrics();
    const states = ['waiting', 'due', 'active', 'order', 'flow', 'failing'];
    expect(states.map((state) => value(`portico_queue_messages{state="${state}"}`))).toEqual([
      2, 1, 0, 2, 0, 0,
    ]);
    expect(value('portico_queue_dead_letters')).toBe(1);
    expect(value('portico_queue_oldest_due_seconds')).toBeGreaterThanOrEqual(100);
  });
});
