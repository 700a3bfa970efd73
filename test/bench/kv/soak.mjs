import { median, noneWrong, printGoal, printTable } from '../frame.mjs';
import { drive, lasting } from '../load.mjs';
import { get, post } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

const REQUESTS = 1_000_000;
const TENTHS = 10;
/** What the resident memory may grow after the first tenth: the collector's own swings are about half of that. */
const GROWTH = 1.15;
const SAMPLE_EVERY_MS = 100;

/**
 * One million requests of all forms, on new connections for each tenth: memory must not grow after the first tenth.
 * @param {import('../frame.mjs').Load} load
 */
export function run({ requests = REQUESTS, connections = 64 }) {
  return withKvServers(async ({ prefix, token, gateway }) => {
    const session = lasting((connection) => mixed(`${prefix}${connection}:`, token));
    const tenths = [];
    for (let i = 0; i < TENTHS; i++) {
      const samples = [gateway.rssMegabytes()];
      const timer = setInterval(() => samples.push(gateway.rssMegabytes()), SAMPLE_EVERY_MS);
      const { port } = gateway;
      const run = await drive({ port, session, connections, requests: Math.ceil(requests / TENTHS) });
      clearInterval(timer);
      tenths.push({ ...run, rss: median(samples), highest: Math.max(...samples) });
    }
    console.log(`\nkv: soak of ${requests} mixed requests, ${connections} connections`);
    printTable(tenths.map(rowOf));
    const growth = tenths.at(-1).rss / tenths[1].rss;
    const goal = `median RSS of the last tenth at most ${GROWTH} of the second's`;
    printGoal(goal, growth <= GROWTH, growth.toFixed(2));
    return noneWrong(tenths.reduce((sum, { wrong }) => sum + wrong, 0)) && growth <= GROWTH;
  });
}

function rowOf({ requests, seconds, latencies, rss, highest, wrong }, i) {
  return {
    tenth: String(i + 1),
    'req/s': String(Math.round(requests / seconds)),
    'p50 ms': latencies.quantile(0.5).toFixed(2),
    'p99 ms': latencies.quantile(0.99).toFixed(2),
    'median RSS MB': rss.toFixed(0),
    'highest RSS MB': highest.toFixed(0),
    wrong: String(wrong),
  };
}

/** One connection's way through the forms of a request, again and again; it knows every reply. */
function mixed(prefix, token) {
  let step = FORMS.length - 1;
  let expected;
  return {
    request: () => {
      step += 1;
      const form = FORMS[step % FORMS.length];
      const { request, status = 200, reply } = form(prefix, token, step);
      expected = { status, reply };
      return request;
    },
    isRight: (status, body) => {
      const { reply } = expected;
      if (status !== expected.status) return false;
      const text = body.toString();
      return typeof reply === 'string' ? text === reply : reply.test(text);
    },
  };
}

const base64 = (text) => Buffer.from(text).toString('base64');
const resultsOf = (results) => JSON.stringify(results.map((result) => ({ result })));

/** In turn: a form that reads follows the one that set it. */
const FORMS = [
  (prefix, token, step) => ({
    request: get(`/kv/set/${prefix}path/${step}?EX=1000`, token),
    reply: '{"result":"OK"}',
  }),
  (prefix, token, step) => ({
    request: get(`/kv/get/${prefix}path`, token),
    reply: `{"result":"${step - 1}"}`,
  }),
  (prefix, token, step) => ({
    request: post('/kv', JSON.stringify(['SET', `${prefix}body`, 'x'.repeat(step % 2_000)]), { token }),
    reply: '{"result":"OK"}',
  }),
  (prefix, token, step) => ({
    request: post('/kv', JSON.stringify(['GET', `${prefix}body`]), { token, base64: true }),
    reply: `{"result":"${base64('x'.repeat((step - 1) % 2_000))}"}`,
  }),
  (prefix, token) => ({
    request: post('/kv', JSON.stringify(['INCR', `${prefix}body`, 1.5]), { token }),
    status: 400,
    reply: /^\{"error":"ERR wrong number of arguments/,
  }),
  (prefix, token, step) => ({
    request: post('/kv/pipeline', JSON.stringify(pipelineOf(prefix, step)), { token, base64: true }),
    reply: resultsOf([...Array(20).keys()].flatMap((i) => ['OK', base64(`${step}:${i}`)])),
  }),
  (prefix, token, step) => ({
    request: post(
      '/kv/multi-exec',
      `[["set","${prefix}t",${step}],["incr","${prefix}t"],["get","${prefix}t"]]`,
      { token },
    ),
    reply: resultsOf(['OK', step + 1, String(step + 1)]),
  }),
  (prefix, _token) => ({ request: get(`/kv/get/${prefix}path`, 'wrong'), status: 401, reply: /WRONGPASS/ }),
  (prefix, token, step) => ({
    request: post(`/kv/set/${prefix}large`, 'y'.repeat(step % 7 === 0 ? 100_000 : 5_000), { token }),
    reply: '{"result":"OK"}',
  }),
  (prefix, token) => ({
    request: post('/kv', JSON.stringify(['GET', `${prefix}large`]), { token }),
    reply: /^\{"result":"y+"\}$/,
  }),
];

function pipelineOf(prefix, step) {
  return [...Array(20).keys()].flatMap((i) => [
    ['set', `${prefix}p:${i}`, `${step}:${i}`],
    ['get', `${prefix}p:${i}`],
  ]);
}
