import { z } from 'zod';
import { HttpCore } from '../../../../src/http/exchange/http-core.js';
import type { ServiceInstance } from '../../../../src/http/instance.js';
import { Health } from '../../../../src/http/monitoring/health.js';
import { Metrics } from '../../../../src/http/monitoring/metrics.js';
import { Operations } from '../../../../src/http/operations/operations.js';
import type { BoundRoute, Route } from '../../../../src/http/route.js';
import { buildApp } from '../../../../src/http/server/app.js';
import { type ListeningServer, listen } from '../../../../src/http/server/server.js';
import { httpSettings } from '../../../../src/http/settings.js';
import { createLogger } from '../../../../src/lib/logger.js';
import { services } from '../../../../src/services/index.js';
import { adminRoutes } from '../../../../src/services/vector/api/admin-routes.js';
import { RawClient } from '../../../support/raw-client.js';

/*
 * Which route takes which path: the tables of all services as they are, behind a server that listens, with handlers that
 * answer what they were given. An outcome is an operation with its target or its parameters, or the status of an error and
 * the path of the mount whose words tell it, with what it allows: `404 /vector`, `405 /kv, POST`. Without a mount nobody's
 * words tell it: of no contract, or HEAD.
 */

type Port = 'main' | 'kvAtRoot' | 'kvAlone' | 'queueAlone';
const ports = new Map<Port, number>();
const servers: ListeningServer[] = [];
const core = new HttpCore(httpSettings.parse({}), new Metrics(), createLogger('silent'));

/** Whose errors it tells is part of the outcome, so each mount has a token of its own. */
const tokenOf = (path: string) => `the-token-of-${path}`;

/** Answers its operation with its target or its parameters. */
function echo(route: Route<unknown>): BoundRoute {
  const { operationId } = route;
  if (route.kind === 'raw') {
    const handle = async ({ target }: { target: string }) => ({
      status: 200,
      body: JSON.stringify({ operationId, target }),
    });
    return { ...route, handle } as BoundRoute;
  }
  const { bodyFlow, parseBody, timeoutMs, ...rest } = route;
  const handle = async ({ params }: { params: object }) => ({ operationId, params });
  return { ...rest, request: { params: z.unknown() }, handle } as BoundRoute;
}

/** They have an instance of their own, below that of the indexes. */
const ELSEWHERE = new Set<unknown>(adminRoutes);

function instanceAt(path: string, name: string): ServiceInstance {
  const service = services.find((one) => one.name === name);
  if (service === undefined) throw new Error(`no service ${name}`);
  return {
    name,
    path,
    port: null,
    auth: {
      kind: 'bearer',
      credentials: [{ token: tokenOf(path), principal: { name: 'test', access: 'full' } }],
    },
    routes: (service.routes as readonly Route<unknown>[]).filter((route) => !ELSEWHERE.has(route)).map(echo),
    formatError: (error) => {
      const words = service.error.parse(service.formatError(error)) as object;
      return { ...words, by: path };
    },
    bodyLimit: 1_000,
    timeoutMs: 4_000,
    backends: [],
  };
}

async function start(port: Port, mounted: Readonly<Record<string, string>>, pages: boolean): Promise<void> {
  const mounts = Object.entries(mounted).map(([path, name]) => ({ path, instance: instanceAt(path, name) }));
  const operations = pages ? new Operations(core, new Health([]), () => '{}') : undefined;
  const server = await listen(buildApp(core, mounts, operations), '127.0.0.1', 0, core);
  servers.push(server);
  ports.set(port, server.port);
}

beforeAll(async () => {
  const second = { '/kv/second': 'kv', '/vector/query/second': 'vector' };
  const all = { '/kv': 'kv', '/vector': 'vector', '/broker': 'broker', '/queue': 'queue' };
  await start('main', { ...all, ...second }, true);
  await start('kvAtRoot', { '/vector': 'vector', '/': 'kv' }, true);
  await start('kvAlone', { '/': 'kv' }, false);
  await start('queueAlone', { '/': 'queue' }, false);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.drain(1_000)));
  core.release();
});

/** @param mount whose token is sent; none where it is empty */
async function ask(port: Port, method: string, target: string, mount: string): Promise<string> {
  const client = await RawClient.open(ports.get(port) as number);
  const credentials = mount === '' ? '' : `Authorization: Bearer ${tokenOf(mount)}\r\n`;
  client.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${credentials}\r\n`);
  const reply = await client.closed();
  client.end();
  return reply === '' ? 'no reply' : outcomeOf(reply);
}

function outcomeOf(reply: string): string {
  const [head = '', text = ''] = reply.split(/\r\n\r\n(.*)/s);
  const status = head.slice(9, 12);
  const body = text === '' ? {} : JSON.parse(text);
  if (status === '200') {
    const { operationId = '200', target, params = {} } = body;
    if (target !== undefined) return `${operationId} ${target}`;
    return Object.keys(params).length === 0 ? operationId : `${operationId} ${JSON.stringify(params)}`;
  }
  if (text !== '') expect(body).toMatchObject({ error: expect.stringMatching(/./) });
  const allow = /\r\nAllow: (.*)/i.exec(head)?.[1];
  const words = body.by === undefined ? status : `${status} ${body.by}`;
  return allow === undefined ? words : `${words}, ${allow.trim()}`;
}

const MOUNTS = ['/kv', '/vector', '/broker', '/queue'];

/** Behind each mount: commands of kv, whatever they hold, and routes of no other. */
const BELOW = [
  ...['///', '/.', '/..', '/../kv/get/k', '/./info', '/%2e%2e/livez', '/%2E/', '/%00', '/%', '/%2', '/%zz'],
  ...['/%E0%A4%A', '/%FF', '/%C3%A9', '/%c3%a9', '/a%2Fb', '/a%2fb', '/a%5cb', '/a\\b', '/a;b=c', '/a//b'],
  ...['/a/', '/a//', '/:group', '/*', '/**', '/(a)', '/{a}', '/a+b', '/a@b', '/a:80', '/|^`<>"', '/%23'],
  ...['/%3F', '/a%3Fb?c', '/a&b=c', '/__proto__', '/constructor/prototype', '/undefined', '/http://h/x'],
  '/a?b?c/d',
  `/${'a'.repeat(9_000)}`,
  '/a'.repeat(3_000),
  '/'.repeat(4_000),
  '/%25'.repeat(2_000),
  '/%zz'.repeat(2_000),
  `/a?${'b'.repeat(9_000)}`,
];

/** The mount itself. */
const MOUNT_ITSELF = ['', '/', '//', '/?', '?', '?a=%2F', '/?x#/y', '#x'];

/** What HTTP does not take. */
const NO_TARGET = ['/\u00e9', '/\u0000', '/a\tb', '/\u007f', '/a b'];

const shown = (targets: readonly string[]) =>
  targets.map(
    (target) =>
      [target.length > 40 ? `${target.slice(0, 8)}... (${target.length})` : target, target] as const,
  );

describe.each(MOUNTS)('below %s', (mount) => {
  const own = (target: string, outcome: string) =>
    expect(ask('main', 'GET', target, mount)).resolves.toBe(outcome);
  const unnamed = (target: string, outcome: string) =>
    expect(ask('main', 'GET', target, '')).resolves.toBe(outcome);

  it.each(shown(BELOW))('%s', async (_, suffix) => {
    await own(mount + suffix, mount === '/kv' ? `kv.path ${suffix}` : `404 ${mount}`);
    await unnamed(mount + suffix, `401 ${mount}`);
  });

  it.each(shown(MOUNT_ITSELF))('%s', async (_, suffix) => {
    await own(mount + suffix, mount === '/kv' ? '405 /kv, POST' : `404 ${mount}`);
    await unnamed(mount + suffix, `401 ${mount}`);
  });

  it.each(shown(NO_TARGET))('%j', async (_, suffix) => {
    await unnamed(mount + suffix, `400 ${mount}`);
  });

  it('no target that is longer than a head may be', async () => {
    expect(await ask('main', 'GET', `${mount}/${'a'.repeat(300_000)}`, mount)).toMatch(/^431/);
  });

  it.each(['x', ';a', '%2Fget', '%00', '\\get', '*', ':80'])('not %s behind its name', async (suffix) => {
    await unnamed(mount + suffix, '404');
    await own(mount + suffix, `404 ${mount}`);
  });
});

describe('below a path where nothing is', () => {
  it.each(shown([...BELOW, ...MOUNT_ITSELF]))('%s', async (_, suffix) => {
    expect(await ask('main', 'GET', `/nope${suffix}`, '')).toBe('404');
    // in the words of the contract whose client asks
    expect(await ask('main', 'GET', `/nope${suffix}`, '/broker')).toBe('404 /broker');
  });
});

/** Target and outcome. */
type Rows = Readonly<Record<string, string>>;

const PATHS: readonly { port: Port; method: string; mount: string; rows: Rows }[] = [
  {
    port: 'main',
    method: 'GET',
    mount: '/kv',
    rows: {
      '/KV/get/k': '404 /kv',
      '/Kv': '404 /kv',
      '/kv%2Fget/k': '404 /kv',
      '//kv/get/k': '404 /kv',
      '/./kv/get/k': '404 /kv',
      '/kvx': '404 /kv',
      '/kv;a/get/k': '404 /kv',
      '/kv\\get': '404 /kv',
      '/kv/secondx': 'kv.path /secondx',
      '/kv/second#x': 'kv.path /second#x',
      '/kv/second%2Fget': 'kv.path /second%2Fget',
      '/kv/pipeline': '405 /kv, POST',
      '/kv/subscribe': 'kv.subscribe /',
      '/kv/subscribe/': 'kv.subscribe /',
      '/kv/subscribe//': 'kv.subscribe //',
      '/kv/subscribe/a%2Fb/c': 'kv.subscribe /a%2Fb/c',
      '/kv/subscribex': 'kv.path /subscribex',
      '/kv/subscribe#x': 'kv.path /subscribe#x',
      '/kv/monitor/': 'kv.monitor /monitor/',
      '/kv/monitor/a': 'kv.path /monitor/a',
      '/kv/psubscribe/*?_token=x': 'kv.psubscribe /*?_token=x',
      '/kv/set/k/a%23b#c': 'kv.path /set/k/a%23b#c',
      '*/kv': '404 /kv',
      'http://h/kv/get/k': 'kv.path /get/k',
      'HTTP://h:1/kv/get/k': 'kv.path /get/k',
      'https://u:p@h/kv/get/k': 'kv.path /get/k',
      'http:///kv/get/k': 'kv.path /get/k',
      'http://h//kv/get/k': '404 /kv',
      'ws://h/kv/get/k': 'kv.path /get/k',
    },
  },
  {
    port: 'main',
    method: 'GET',
    mount: '',
    rows: {
      '/k%76/get/k': '404',
      '/': '404',
      '//': '404',
      '/?': '404',
      '/#': '404',
      '/%': '404',
      '/livez': '200',
      '/livez/': '200',
      '/livez//': '404',
      '/Livez': '404',
      '/live%7a': '404',
      '/livez#x': '200',
      '/livez?x': '200',
      '/livez/x': '404',
      '/readyz/kv': '404',
      '/readyz/%zz': '400',
      '/readyz/kv/x': '404',
      '/openapi.json/': '200',
      '/metrics/x': '404',
      '*': '404',
      'http://h': '404',
      'http://h?x': '404',
      'http://h#x': '400',
      'http://': '404',
      'ftp://h/livez': '200',
      'kv/get/k': '400',
      'h:80': '400',
      '?x': '400',
      '#x': '400',
    },
  },
  {
    port: 'main',
    method: 'GET',
    mount: '/vector',
    rows: {
      '/vector/../kv/get/k': '404 /vector',
      'ftp://h/vector/info': 'vector.info',
    },
  },
  {
    port: 'main',
    method: 'GET',
    mount: '/kv/second',
    rows: {
      '/kv/second': '405 /kv/second, POST',
      '/kv/second/get/k': 'kv.path /get/k',
    },
  },
  {
    port: 'main',
    method: 'POST',
    mount: '/kv',
    rows: {
      '/kv/pipeline': 'kv.pipeline /pipeline',
      '/kv/pipeline/': 'kv.pipeline /pipeline/',
      '/kv/pipeline//': 'kv.path /pipeline//',
      '/kv/Pipeline': 'kv.path /Pipeline',
      '/kv/pipelin%65': 'kv.path /pipelin%65',
      '/kv/pipeline?a': 'kv.pipeline /pipeline?a',
      '/kv/pipeline#x': 'kv.path /pipeline#x',
      '/kv/pipeline;a': 'kv.path /pipeline;a',
      '/kv/pipeline/a': 'kv.path /pipeline/a',
      '/kv/multi-exec/': 'kv.transaction /multi-exec/',
      '/kv//': 'kv.command //',
      '/kv//pipeline': 'kv.path //pipeline',
    },
  },
  {
    port: 'main',
    method: 'POST',
    mount: '/vector',
    rows: {
      '/vector/query': 'vector.query',
      '/vector/query/': 'vector.query',
      '/vector/query//': 'vector.queryInNamespace {"namespace":["",""]}',
      '/vector/query/ns': 'vector.queryInNamespace {"namespace":["ns"]}',
      '/vector/query/ns/': 'vector.queryInNamespace {"namespace":["ns",""]}',
      '/vector/query/a/b': 'vector.queryInNamespace {"namespace":["a","b"]}',
      '/vector/query/a%2Fb': 'vector.queryInNamespace {"namespace":["a/b"]}',
      '/vector/query//ns': 'vector.queryInNamespace {"namespace":["","ns"]}',
      '/vector/query/%zz': '400 /vector',
      '/vector/query/%FF': '400 /vector',
      '/vector/query/..': 'vector.queryInNamespace {"namespace":[".."]}',
      '/vector/query/__proto__': 'vector.queryInNamespace {"namespace":["__proto__"]}',
      '/vector/query#x': 'vector.query',
      '/vector/query/ns#x': 'vector.queryInNamespace {"namespace":["ns"]}',
      '/vector/query?a#x': 'vector.query',
      '/vector/query/n%20s': 'vector.queryInNamespace {"namespace":["n s"]}',
      '/vector/query/\u00e9': '400 /vector',
      '/vector/Query': '404 /vector',
      '/vector/quer%79': '404 /vector',
      '/vector/query;a': '404 /vector',
      '/vector/query/secondx': 'vector.queryInNamespace {"namespace":["secondx"]}',
    },
  },
  {
    port: 'main',
    method: 'POST',
    mount: '/vector/query/second',
    rows: {
      '/vector/query/second': '404 /vector/query/second',
      '/vector/query/second/query': 'vector.query',
      '/vector/query/second/nope': '404 /vector/query/second',
    },
  },
  {
    port: 'main',
    method: 'POST',
    mount: '/broker',
    rows: {
      '/broker/produce/t': 'broker.produceToTopic {"topic":"t"}',
      '/broker/produce/t/': 'broker.produceToTopic {"topic":"t"}',
      '/broker/produce//': '404 /broker',
      '/broker/produce//m': '404 /broker',
      '/broker/produce/a%2Fb': 'broker.produceToTopic {"topic":"a/b"}',
      '/broker/produce/t%00': 'broker.produceToTopic {"topic":"t\\u0000"}',
      '/broker/produce/%': '400 /broker',
      '/broker/produce/%E9': '400 /broker',
      '/broker/produce/__proto__': 'broker.produceToTopic {"topic":"__proto__"}',
      '/broker/produce/..': 'broker.produceToTopic {"topic":".."}',
      '/broker/produce/t#x': 'broker.produceToTopic {"topic":"t"}',
      '/broker/produce/t?x=/y': 'broker.produceToTopic {"topic":"t"}',
      '/broker/produce/t;x': 'broker.produceToTopic {"topic":"t;x"}',
      '/broker/Produce/t': '404 /broker',
      '/broker/produce/t/m/x': '404 /broker',
    },
  },
  {
    port: 'main',
    method: 'GET',
    mount: '/broker',
    rows: {
      '/broker/produce/t/m%2Fx': 'broker.produceFromPath {"topic":"t","message":"m/x"}',
      '/broker/produce/t/%2e%2e': 'broker.produceFromPath {"topic":"t","message":".."}',
      '/broker/consume/g/i': 'broker.consume {"group":"g","instance":"i"}',
      '/broker/consume/g/i/t': 'broker.consumeTopic {"group":"g","instance":"i","topic":"t"}',
      '/broker/consume/g/i/': 'broker.consume {"group":"g","instance":"i"}',
      '/broker/consume/g//': '404 /broker',
      '/broker/consume//i': '404 /broker',
      '/broker/consume/%2F/%3F': 'broker.consume {"group":"/","instance":"?"}',
      '/broker/consume/g/%': '400 /broker',
      '/broker/consume/g/i/t/x': '404 /broker',
      '/broker/consume/g': '404 /broker',
      '/broker/offsets/%31': 'broker.offsets {"timestamp":"1"}',
      '/broker/consumers/': 'broker.consumers',
    },
  },
  {
    port: 'main',
    method: 'POST',
    mount: '/queue',
    rows: {
      '/queue/v2/publish': 'queue.publish /',
      '/queue/v2/publish/': 'queue.publish /',
      '/queue/v2/publish//': 'queue.publish //',
      '/queue/v2/publish/https://h/x?y=1#z': 'queue.publish /https://h/x?y=1#z',
      '/queue/v2/publish/https://h/%zz': 'queue.publish /https://h/%zz',
      '/queue/v2/publish/https:%2F%2Fh': 'queue.publish /https:%2F%2Fh',
      '/queue/v2/publish/..': 'queue.publish /..',
      '/queue/v2/publishx': '404 /queue',
      '/queue/V2/publish/g': '404 /queue',
      '/queue//v2/publish/g': '404 /queue',
      '/queue/v2//publish/g': '404 /queue',
      '/queue/v2/publish#x': 'queue.publish /#x',
      '/queue/v2/schedules/https://h/': 'queue.createSchedule /https://h/',
      '/queue/v2/schedules/s/pause': 'queue.pauseSchedule {"id":"s"}',
      '/queue/v2/schedules/s/pause/': 'queue.pauseSchedule {"id":"s"}',
      '/queue/v2/schedules/s/pausex': 'queue.createSchedule /s/pausex',
      '/queue/v2/schedules//pause': 'queue.createSchedule //pause',
      '/queue/v2/dlq/retry': 'queue.retryDeadLetters /v2/dlq/retry',
      '/queue/v2/dlq/retry/': 'queue.retryDeadLetters /v2/dlq/retry/',
      '/queue/v2/dlq/retry/d': 'queue.retryDeadLetter /d',
      '/queue/v2/dlq/retry/d/e': 'queue.retryDeadLetter /d/e',
      '/queue/v2/topics/g%2Fh/endpoints/': 'queue.addEndpoints {"group":"g/h"}',
      '/queue/v2/topics//endpoints': '404 /queue',
    },
  },
  {
    port: 'main',
    method: 'GET',
    mount: '/queue',
    rows: {
      '/queue/v2/schedules/s': 'queue.getSchedule {"id":"s"}',
      '/queue/v2/schedules/%zz': '400 /queue',
      '/queue/v2/schedules/%zz/x': '405 /queue, POST',
      '/queue/v2/schedules//': '405 /queue, POST',
      '/queue/v2/flowControl': 'queue.listFlowControl /v2/flowControl',
      '/queue/v2/flowControl/': 'queue.listFlowControl /v2/flowControl/',
      '/queue/v2/flowControl/a%2Fb/c': 'queue.getFlowControl /a%2Fb/c',
      '/queue/v2/dlq/%2e%2e': 'queue.getDeadLetter {"id":".."}',
      '/queue/v2/messages/': '405 /queue, DELETE',
      '/queue/v2/keys/rotate': '405 /queue, POST',
      '/queue/v2/queues/%00': 'queue.getQueue {"queue":"\\u0000"}',
    },
  },
  {
    port: 'kvAtRoot',
    method: 'GET',
    mount: '/',
    rows: {
      '/': '405 /, POST',
      '/get/k': 'kv.path /get/k',
      '/get/k#x': 'kv.path /get/k#x',
      '//get/k': 'kv.path //get/k',
      '/vectorx': 'kv.path /vectorx',
      '/vector%2Finfo': 'kv.path /vector%2Finfo',
      '/livez': '200',
      '/livez#x': '200',
      '/livez/': '200',
      '/livez/x': 'kv.path /livez/x',
      '/readyz/kv': '404',
      '/readyz/kv/x': 'kv.path /readyz/kv/x',
      '/%zz': 'kv.path /%zz',
      '*': 'kv.path /*',
      'http://h': '405 /, POST',
      'http://h/get/k': 'kv.path /get/k',
    },
  },
  {
    port: 'kvAtRoot',
    method: 'GET',
    mount: '/vector',
    rows: {
      '/vector/info': 'vector.info',
      '/vector': '404 /vector',
      '/vector#x': '404 /vector',
    },
  },
  {
    port: 'kvAtRoot',
    method: 'POST',
    mount: '/',
    rows: {
      '/': 'kv.command /',
      '/?x': 'kv.command /?x',
      '/#x': 'kv.command /#x',
      '//': 'kv.command //',
      '/pipeline': 'kv.pipeline /pipeline',
      '/pipeline/': 'kv.pipeline /pipeline/',
      '/pipeline#x': 'kv.pipeline /pipeline#x',
      '/pipeline/#x': 'kv.pipeline /pipeline/#x',
      '*': 'kv.path /*',
      'http://h': 'kv.command /',
      'http://h?x': 'kv.command /?x',
    },
  },
  {
    port: 'kvAlone',
    method: 'GET',
    mount: '/',
    rows: {
      '/': '405 /, POST',
      '/get/k#x': 'kv.path /get/k#x',
      '/livez': 'kv.path /livez',
      '/livez#x': 'kv.path /livez#x',
      '/readyz/kv': 'kv.path /readyz/kv',
      '*': 'kv.path /*',
    },
  },
  {
    port: 'kvAlone',
    method: 'POST',
    mount: '/',
    rows: {
      '/': 'kv.command /',
      '/#x': 'kv.path /#x',
      '/pipeline': 'kv.pipeline /pipeline',
      '/pipeline#x': 'kv.path /pipeline#x',
      '/pipeline/': 'kv.pipeline /pipeline/',
      '/pipeline/#x': 'kv.path /pipeline/#x',
    },
  },
  {
    port: 'queueAlone',
    method: 'POST',
    mount: '/',
    rows: {
      '/': '404 /',
      '//': '404 /',
      '/v2/publish/https://h/': 'queue.publish /https://h/',
      '//v2/publish/g': '404 /',
      '/v2/publish#x': 'queue.publish /#x',
      '/queue/v2/publish/g': '404 /',
      '*': '404 /',
      'http://h/v2/publish/g': 'queue.publish /g',
    },
  },
];

/** Of a target, in the words of its mount. */
const METHODS = [
  {
    target: '/kv/get/k',
    mount: '/kv',
    HEAD: '200',
    OPTIONS: '405 /kv, GET, HEAD, POST, PUT',
    DELETE: '405 /kv, GET, HEAD, POST, PUT',
    PROPFIND: '405 /kv, GET, HEAD, POST, PUT',
    TRACE: '405 /kv, GET, HEAD, POST, PUT',
    FOO: '400 /kv',
    get: '400',
    CONNECT: 'no reply',
  },
  {
    target: '/kv/pipeline',
    mount: '/kv',
    HEAD: '405, POST',
    OPTIONS: '405 /kv, POST',
    DELETE: '405 /kv, POST',
    PROPFIND: '405 /kv, POST',
    TRACE: '405 /kv, POST',
    FOO: '400 /kv',
    get: '400',
  },
  {
    target: '/vector/query/%zz',
    mount: '/vector',
    HEAD: '400',
    OPTIONS: '400 /vector',
    DELETE: '400 /vector',
    PROPFIND: '400 /vector',
    TRACE: '400 /vector',
    FOO: '400 /vector',
    get: '400',
  },
  {
    target: '/vector/nope',
    mount: '/vector',
    HEAD: '404',
    OPTIONS: '404 /vector',
    DELETE: '404 /vector',
    PROPFIND: '404 /vector',
    TRACE: '404 /vector',
    FOO: '400 /vector',
    get: '400',
  },
  {
    target: '/broker/consume/g/i',
    mount: '/broker',
    HEAD: '405, GET, POST',
    OPTIONS: '405 /broker, GET, POST',
    DELETE: '405 /broker, GET, POST',
    PROPFIND: '405 /broker, GET, POST',
    TRACE: '405 /broker, GET, POST',
    FOO: '400 /broker',
    get: '400',
  },
  {
    target: '/queue/v2/publish/x',
    mount: '/queue',
    HEAD: '405, POST',
    OPTIONS: '405 /queue, POST',
    DELETE: '405 /queue, POST',
    PROPFIND: '405 /queue, POST',
    TRACE: '405 /queue, POST',
    FOO: '400 /queue',
    get: '400',
  },
  {
    target: '/queue/v2/schedules/s',
    mount: '/queue',
    HEAD: '200',
    OPTIONS: '405 /queue, POST, GET, DELETE, HEAD',
    DELETE: 'queue.deleteSchedule {"id":"s"}',
    PROPFIND: '405 /queue, POST, GET, DELETE, HEAD',
    TRACE: '405 /queue, POST, GET, DELETE, HEAD',
    FOO: '400 /queue',
    get: '400',
  },
  {
    target: '/nope',
    mount: '',
    HEAD: '404',
    OPTIONS: '404',
    DELETE: '404',
    PROPFIND: '404',
    TRACE: '404',
    FOO: '400',
    get: '400',
  },
  {
    target: '/livez',
    mount: '',
    HEAD: '200',
    OPTIONS: '405, GET, HEAD',
    DELETE: '405, GET, HEAD',
    PROPFIND: '405, GET, HEAD',
    TRACE: '405, GET, HEAD',
    FOO: '400',
    get: '400',
  },
  {
    target: '*',
    mount: '',
    HEAD: '404',
    OPTIONS: '404',
    DELETE: '404',
    PROPFIND: '404',
    TRACE: '404',
    FOO: '400',
    get: '400',
  },
  { target: 'h:80', mount: '', CONNECT: 'no reply' },
];

describe.each(PATHS)('$port: $method with the token of $mount', ({ port, method, mount, rows }) => {
  it.each(Object.entries(rows))('%s', async (target, outcome) => {
    expect(await ask(port, method, target, mount)).toBe(outcome);
  });
});

describe.each(METHODS)('the methods of $target', ({ target, mount, ...outcomes }) => {
  it.each(Object.entries(outcomes))('%s', async (method, outcome) => {
    expect(await ask('main', method, target, mount)).toBe(outcome);
  });
});
