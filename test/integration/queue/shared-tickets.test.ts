import { type Channel, type ChannelModel, connect } from 'amqplib';
import pg from 'pg';
import { encodeTickets } from '../../../src/services/queue/message/message.js';
import { topologyNames } from '../../../src/services/queue/rabbitmq/topology-names.js';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';

const namespace = queueNamespace();
const names = topologyNames(namespace.prefix);
/** 60 s are 480 units of 125 ms, and the queue of its digit (480 = 15 * 32) is where such a ticket waits. */
const MINUTE = { 'upstash-delay': '60s' };
const minuteQueue = names.wait(1, 15);
let gateway: RunningGateway;
let receiver: Receiver;
let connection: ChannelModel;
let channel: Channel;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver((request, response) => {
    response.writeHead(request.url === '/bad' ? 500 : 200);
    response.end();
  });
  connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
  channel = await connection.createChannel();
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await connection?.close();
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

const waiting = async () => (await channel.checkQueue(minuteQueue)).messageCount;
const stateOf = async (id: string | undefined) =>
  (await namespace.query<{ state: string }>('select state from $schema.messages where id = $1', [id]))[0]
    ?.state;
const drained = async (queue: string) =>
  eventually(async () => expect((await channel.checkQueue(queue)).messageCount).toBe(0));

it('settles each ticket of a RabbitMQ message for itself: delivered, dead, unknown', async () => {
  const paths = ['one', 'bad', 'two', 'three'];
  const published = await Promise.all(
    paths.map((path) => publish(gateway, `${receiver.url}/${path}`, { ...MINUTE, 'upstash-retries': '0' })),
  );
  const ids = published.map(({ body }) => String(body.messageId));
  await namespace.query('update $schema.messages set due_at = now() where id = any($1)', [ids]);
  const tickets = [...ids, 'msg_unknown'].map((id) => ({ id, attempt: 0 }));
  channel.sendToQueue(names.work, encodeTickets(tickets));
  await eventually(async () => {
    const states = await Promise.all(ids.map(stateOf));
    expect(states).toEqual(['DELIVERED', 'FAILED', 'DELIVERED', 'DELIVERED']);
  });
  const letters = await namespace.query('select message_id from $schema.dead_letters');
  expect(letters).toEqual([{ message_id: ids[1] }]);
  await drained(names.work);
  await drained(names.dead);
  expect(receiver.received.map(({ url }) => url).sort()).toEqual(paths.map((path) => `/${path}`).sort());
});

it('sends tickets that are confirmed together in fewer messages than there are', async () => {
  await channel.purgeQueue(minuteQueue);
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => publish(gateway, `${receiver.url}/many`, MINUTE)),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const contents: string[] = [];
  for (let i = await waiting(); i > 0; i--) {
    const message = await channel.get(minuteQueue, { noAck: true });
    if (message !== false) contents.push(message.content.toString());
  }
  expect(contents.length).toBeLessThan(60);
  const inQueue = contents.flatMap((text) => (JSON.parse(text) as unknown[]).filter((_, i) => i % 2 === 0));
  expect(inQueue.sort()).toEqual(answers.map(({ body }) => body.messageId).sort());
});

it('refuses a delayed message that Postgres does not store, whose ticket is on its way already', async () => {
  await channel.purgeQueue(minuteQueue);
  const locker = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await locker.connect();
  let status: number;
  try {
    await locker.query('begin');
    await locker.query(`lock table ${namespace.schema}.messages in share mode`);
    ({ status } = await publish(gateway, `${receiver.url}/locked`, MINUTE));
  } finally {
    await locker.end();
  }
  expect(status).toBe(503);
  expect(await waiting()).toBe(1);
  const message = await channel.get(minuteQueue, { noAck: true });
  if (message === false) throw new Error('the ticket is gone');
  channel.sendToQueue(names.work, message.content);
  await drained(names.work);
  const stored = await namespace.query(
    "select id from $schema.messages where url like '%/locked' and state <> 'CANCELED'",
  );
  expect(stored).toEqual([]);
  expect(receiver.received.filter(({ url }) => url === '/locked')).toEqual([]);
});
