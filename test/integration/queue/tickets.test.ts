import { type Channel, type ChannelModel, connect } from 'amqplib';
import { createLogger } from '../../../src/lib/logger.js';
import { encodeTickets } from '../../../src/services/queue/message/message.js';
import { describeTopology } from '../../../src/services/queue/rabbitmq/topology.js';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';

const namespace = queueNamespace();
const { names } = describeTopology(namespace.prefix);
let gateway: RunningGateway;
let receiver: Receiver;
let connection: ChannelModel;
let channel: Channel;
let status = 200;
/** Lines of the gateway's log. */
const warnings: string[] = [];

beforeAll(async () => {
  const log = createLogger('warn', { write: (line) => void warnings.push(line) });
  gateway = await startGateway({ queue: namespace.config }, {}, log);
  receiver = await startReceiver((_, response) => {
    response.writeHead(status, { 'Retry-After': '1s' });
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
beforeEach(() => {
  status = 200;
});

const intoWork = (content: Buffer) => channel.sendToQueue(names.work, content);
const at = (path: string) => receiver.received.filter(({ url }) => url === path);

interface Row {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
}
const rowOf = async (id: string | undefined) =>
  (await namespace.query<Row>('select id, state, attempt from $schema.messages where id = $1', [id]))[0];
const reaches = (id: string | undefined, state: string) =>
  eventually(async () => expect((await rowOf(id))?.state).toBe(state));
const drained = () =>
  eventually(async () => expect((await channel.checkQueue(names.work)).messageCount).toBe(0));

it('delivers once however many tickets a message has', async () => {
  const started = performance.now();
  const { body } = await publish(gateway, `${receiver.url}/many`, { 'upstash-delay': '2s' });
  for (let i = 0; i < 20; i++) intoWork(encodeTickets([{ id: String(body.messageId), attempt: 0 }]));
  await reaches(body.messageId, 'DELIVERED');
  // the extra ones came early: they wait for the message's time
  expect((at('/many')[0]?.at ?? 0) - started).toBeGreaterThan(1_900);
  for (let i = 0; i < 20; i++) intoWork(encodeTickets([{ id: String(body.messageId), attempt: 0 }]));
  await drained();
  const { body: last } = await publish(gateway, `${receiver.url}/last`);
  await reaches(last.messageId, 'DELIVERED');
  expect(at('/many')).toHaveLength(1);
});

it('repeats no attempt whose outcome is known when its ticket comes back, and owes the next one', async () => {
  status = 500;
  const { body } = await publish(gateway, `${receiver.url}/stale`, { 'upstash-retries': '1' });
  await reaches(body.messageId, 'RETRY');
  intoWork(encodeTickets([{ id: String(body.messageId), attempt: 0 }]));
  await reaches(body.messageId, 'FAILED');
  expect(at('/stale').map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '1']);
});

it('forgets tickets of unknown messages and things that are no tickets', async () => {
  intoWork(encodeTickets([{ id: 'msg_unknown', attempt: 0 }]));
  intoWork(Buffer.from('nonsense'));
  intoWork(Buffer.alloc(0));
  // Postgres refuses both
  intoWork(encodeTickets([{ id: 'a\0', attempt: 0 }]));
  intoWork(encodeTickets([{ id: 'msg_unknown', attempt: 2 ** 31 }]));
  const { body } = await publish(gateway, `${receiver.url}/after-nonsense`);
  await reaches(body.messageId, 'DELIVERED');
  await drained();
});

it('gives up a message that was claimed again and again without an outcome', async () => {
  const { body } = await publish(gateway, `${receiver.url}/killer`, { 'upstash-delay': '5s' });
  await namespace.query('update $schema.messages set claims = 20 where id = $1', [body.messageId]);
  await reaches(body.messageId, 'FAILED');
  expect(at('/killer')).toEqual([]);
  const [letter] = await namespace.query<{ error: string; status: number }>(
    'select failure_error as error, failure_status as status from $schema.messages where dead and id = $1',
    [body.messageId],
  );
  expect(letter).toEqual({ error: 'given up: 20 attempts ended without an outcome', status: 0 });
});

it.each([
  ['claimed', "new.state = 'ACTIVE'"],
  ['concluded', "new.state = 'DELIVERED'"],
])('delivers messages that cannot be %s together in the time that a statement has', async (_, change) => {
  await namespace.query(`create function $schema.slow() returns trigger language plpgsql as
    $body$ begin perform pg_sleep(0.2); return new; end $body$`);
  await namespace.query(`create trigger slow before update on $schema.messages for each row
    when (${change} and old.state <> new.state) execute function $schema.slow()`);
  try {
    const path = `/slowly/${change.length}`;
    warnings.length = 0;
    await Promise.all(Array.from({ length: 16 }, () => publish(gateway, receiver.url + path)));
    await eventually(async () => {
      const open = await namespace.query('select id from $schema.messages where finished_at is null');
      expect(open).toEqual([]);
    });
    expect(at(path)).toHaveLength(16);
    // neither a pause of all deliveries nor an outcome that was not written
    expect(warnings).toEqual([]);
  } finally {
    await namespace.query('drop function $schema.slow cascade');
  }
});

it('never delivers what was cancelled', async () => {
  const { body } = await publish(gateway, `${receiver.url}/cancelled`, { 'upstash-delay': '5s' });
  await namespace.query("update $schema.messages set state = 'CANCELED', finished_at = now() where id = $1", [
    body.messageId,
  ]);
  const { body: later } = await publish(gateway, `${receiver.url}/later`, { 'upstash-delay': '6s' });
  await reaches(later.messageId, 'DELIVERED');
  expect(at('/cancelled')).toEqual([]);
});

it('removes delivered messages after a while, and dead ones with their letters after the retention', async () => {
  const delivered = await publish(gateway, `${receiver.url}/old`);
  await reaches(delivered.body.messageId, 'DELIVERED');
  status = 500;
  const dead = await publish(gateway, `${receiver.url}/dead`, { 'upstash-retries': '0' });
  await reaches(dead.body.messageId, 'FAILED');
  const ids = [delivered.body.messageId, dead.body.messageId];
  const age = async (interval: string) => {
    await namespace.query(
      'update $schema.messages set finished_at = now() - $2::interval where id = any($1)',
      [ids, interval],
    );
    await namespace.query(
      'update $schema.dead_letters set created_at = now() - $2::interval where message_id = any($1)',
      [ids, interval],
    );
  };
  await age('25 hours');
  await eventually(async () => expect(await rowOf(delivered.body.messageId)).toBeUndefined());
  expect(await rowOf(dead.body.messageId)).toMatchObject({ state: 'FAILED' });
  await age('8 days');
  await eventually(async () => expect(await rowOf(dead.body.messageId)).toBeUndefined());
  const letters = await namespace.query('select id from $schema.dead_letters where message_id = any($1)', [
    ids,
  ]);
  expect(letters).toEqual([]);
});
