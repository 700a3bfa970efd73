import { compare } from '../frame.mjs';
import { Latencies } from '../latencies.mjs';
import { withBrokerServers } from './servers.mjs';

export const backends = ['kafka'];

const VALUE = 'x'.repeat(200);
const SHAPES = [
  { recordsPerSend: 1, connections: 64, ratio: 2 },
  { recordsPerSend: 100, connections: 16, ratio: 0.6 },
];

/**
 * Records of 200 bytes, one and a hundred a request, against bare kafkajs that sends as many at once.
 * @param {import('../frame.mjs').Load} given
 */
export function run({ seconds = 3, ...load }) {
  return withBrokerServers(async (bench) => {
    let right = true;
    for (const shape of SHAPES) right = (await compareProduce(bench, shape, { seconds, ...load })) && right;
    return right;
  });
}

function compareProduce(
  { topic, reference, gateway, request },
  { recordsPerSend, connections, ratio },
  load,
) {
  const records = Array.from({ length: recordsPerSend }, () => ({ value: VALUE }));
  const prepared = request('POST', `/produce/${topic}`, {
    body: recordsPerSend === 1 ? records[0] : records,
  });
  const session = {
    request: () => prepared,
    isRight: (status, body) => status === 200 && offsetsIn(body) === recordsPerSend,
  };
  const contenders = [
    { name: 'kafkajs', server: reference, run: (shape) => bareRun(reference, topic, recordsPerSend, shape) },
    { name: 'Portico', server: gateway, session: () => session, goal: { ratio } },
  ];
  const title = `broker: produce, ${recordsPerSend} record(s) of 200 bytes a request`;
  return compare({ title, contenders, connections, unitsPerRequest: recordsPerSend, unit: 'record' }, load);
}

async function bareRun(reference, topic, recordsPerSend, { connections: inFlight, seconds }) {
  const options = { topic, value: VALUE, recordsPerSend, inFlight, seconds };
  const result = await reference.run({ task: 'produce', ...options });
  const latencies = new Latencies();
  for (const microseconds of result.microseconds) latencies.add(microseconds);
  return { requests: result.microseconds.length, wrong: 0, seconds: result.seconds, latencies };
}

/** Parsing would be work on the cores that the load shares with the gateway. */
function offsetsIn(body) {
  let count = 0;
  for (let at = body.indexOf('"offset":'); at >= 0; at = body.indexOf('"offset":', at + 1)) count++;
  return count;
}
