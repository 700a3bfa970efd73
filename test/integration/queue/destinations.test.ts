import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';

const namespace = queueNamespace({ concurrency: 20, destinationConcurrency: 10 });
let gateway: RunningGateway;
let hanging: Receiver;
let quick: Receiver;
let release: () => void = () => {};

beforeAll(async () => {
  const opened = new Promise<void>((resolve) => {
    release = resolve;
  });
  gateway = await startGateway({ queue: namespace.config });
  hanging = await startReceiver((_, response) => void opened.then(() => response.end()));
  quick = await startReceiver();
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  release();
  await gateway?.stop();
  await hanging?.stop();
  await quick?.stop();
  await namespace.remove();
});

const paths = ({ received }: Receiver) => received.map(({ url }) => url);
const publishTo = async (receiver: Receiver, count: number) => {
  const replies = await Promise.all(
    Array.from({ length: count }, (_, n) => publishUntilTaken(gateway, `${receiver.url}/${n}`)),
  );
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
};

it('delivers to others while more messages than there are places wait for a destination that hangs', async () => {
  await publishTo(hanging, 60);
  await eventually(() => expect(hanging.received).toHaveLength(10));
  await publishTo(quick, 30);
  await eventually(() => expect(quick.received).toHaveLength(30));
  expect(hanging.received).toHaveLength(10);
  expect(new Set(paths(quick)).size).toBe(30);
});

it('delivers what had to wait once, as a first attempt, when the destination answers again', async () => {
  release();
  await eventually(() => expect(new Set(paths(hanging)).size).toBe(60));
  await eventually(async () => {
    const states = await namespace.query('select state, count(*)::int as n from $schema.messages group by 1');
    expect(states).toEqual([{ state: 'DELIVERED', n: 90 }]);
  });
  expect(hanging.received).toHaveLength(60);
  expect(new Set(hanging.received.map(({ headers }) => headers['upstash-retried']))).toEqual(new Set(['0']));
  const claims = await namespace.query('select max(claims) as most from $schema.messages');
  expect(claims).toEqual([{ most: 1 }]);
});
