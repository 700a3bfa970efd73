import { median, noneWrong, printGoal, printTable } from '../frame.mjs';
import { HttpConnection } from '../http-connection.mjs';
import { withBrokerServers } from './servers.mjs';

export const backends = ['kafka'];

const VALUE = 'x'.repeat(200);
const RECORDS = 1_000_000;
/** Joining and the first reads are not what is compared. */
const FROM = RECORDS / 4;
const RATIO = 0.6;
/** Every so many-th reply is parsed and looked at; of the others, records are counted. */
const LOOKED_AT = 50;
const OFFSET = Buffer.from('"offset":');

/**
 * Reading a topic of a million records of 200 bytes from its beginning: kafkajs' `eachBatch` against replies of 500
 * records, with one consumer instance and with four.
 * @param {import('../frame.mjs').Load} load
 */
export function run({ rounds }) {
  return withBrokerServers(async (bench) => {
    await bench.reference.run({ task: 'fill', topic: bench.topic, value: VALUE, records: RECORDS });
    let wrong = 0;
    for (const instances of [1, 4]) wrong += await compareConsume(bench, rounds, instances);
    return noneWrong(wrong);
  });
}

async function compareConsume(bench, rounds, instances) {
  const { reference, topic, group } = bench;
  const bareRun = () =>
    reference.run({ task: 'consume', topic, records: RECORDS, from: FROM, group: group() });
  const runs = { kafkajs: [], Portico: [] };
  // the first round warms both up
  for (let round = 0; round <= rounds; round++) {
    const bare = await bareRun();
    const ours = await readWhole(bench, instances);
    if (round === 0) continue;
    runs.kafkajs.push(bare);
    runs.Portico.push(ours);
  }
  console.log(
    `\nbroker: consume of a full topic, 500 records a reply, ${instances} instance(s) — ${rounds} rounds`,
  );
  const ratios = runs.Portico.map((ours, i) => rateOf(ours) / rateOf(runs.kafkajs[i]));
  printTable(
    Object.entries(runs).map(([name, all]) => ({
      server: name,
      'record/s': spread(all.map(rateOf), 0),
      ratio: name === 'Portico' ? spread(ratios, 2) : '1',
      'CPU µs/record': spread(
        all.map(({ cpuSeconds, records }) => (cpuSeconds * 1e6) / records),
        2,
      ),
    })),
  );
  printGoal(`at least ${RATIO} of kafkajs`, median(ratios) >= RATIO, median(ratios).toFixed(2));
  return runs.Portico.reduce((sum, { wrong }) => sum + wrong, 0);
}

/** A new group's instances, each with one request after the other, until all records have come. */
async function readWhole({ topic, group, gateway, request }, instances) {
  const mine = group();
  const run = { seen: 0, wrong: 0, replies: 0, start: undefined };
  const headers = ['Kafka-Auto-Offset-Reset: earliest'];
  const connections = await Promise.all(
    Array.from({ length: instances }, () => HttpConnection.open(gateway.port)),
  );
  const begin = () => ({ seen: run.seen, at: performance.now(), cpu: gateway.cpuSeconds() });
  let end;
  const reader = async (connection, i) => {
    const consume = request('GET', `/consume/${mine}/${i}/${topic}?timeout=200`, { headers });
    while (run.seen < RECORDS) {
      look(run, await ask(connection, consume));
      if (run.seen >= FROM) run.start ??= begin();
      if (run.seen >= RECORDS) end ??= begin();
    }
  };
  await Promise.all(connections.map(reader));
  await Promise.all(
    connections.map(async (connection, i) => {
      await ask(connection, request('POST', `/delete-consumer/${mine}/${i}`));
      connection.close();
    }),
  );
  const { start, wrong } = run;
  const seconds = (end.at - start.at) / 1_000;
  return { records: end.seen - start.seen, seconds, cpuSeconds: end.cpu - start.cpu, wrong };
}

function ask(connection, request) {
  return new Promise((resolve, reject) => {
    const receive = (status, body) =>
      status === 200 ? resolve(body) : reject(new Error(`${status} ${body.toString()}`));
    connection.send(request, receive, reject);
  });
}

function look(run, body) {
  let count = 0;
  // the next one is behind a value
  for (let at = body.indexOf(OFFSET); at >= 0; at = body.indexOf(OFFSET, at + VALUE.length)) count++;
  run.seen += count;
  if (run.replies++ % LOOKED_AT !== 0) return;
  const records = JSON.parse(body.toString());
  const next = new Map();
  const isRight = ({ partition, offset, value }) => {
    const expected = next.get(partition) ?? offset;
    next.set(partition, offset + 1);
    return offset === expected && value === VALUE;
  };
  if (records.length !== count || !records.every(isRight)) run.wrong += 1;
}

function rateOf({ records, seconds }) {
  return records / seconds;
}

/** `median (min..max)` */
function spread(values, digits) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(digits)} (${least.toFixed(digits)}..${most.toFixed(digits)})`;
}
