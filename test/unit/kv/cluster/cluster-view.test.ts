import { newestView, readView } from '../../../../src/services/kv/cluster/cluster-view.js';
import { redirectionOf } from '../../../../src/services/kv/redis/redirection.js';
import { RespError, type RespValue } from '../../../../src/services/kv/resp/resp-decoder.js';

const text = (word: string) => Buffer.from(word);
const info = (state: string, epoch: number) =>
  text(`cluster_state:${state}\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:${epoch}\r\n`);
const range = (from: number, to: number, ...nodes: [string | null, number][]): RespValue => [
  String(from),
  String(to),
  ...nodes.map(([host, port]) => [host === null ? null : text(host), String(port), text('id'), []]),
];

describe('a view', () => {
  test('has an owner for each slot that has one, and every name of every node', () => {
    const slots = [range(0, 99, ['10.0.0.1', 7000], ['10.0.0.4', 7003]), range(200, 16_383, ['::1', 7001])];
    const nodes = text(
      'a 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-99\n' +
        'b ::1:7001@17001,redis-b.local master - 0 0 2 connected 200-16383\n' +
        'c 10.0.0.9:7009 master - 0 0 3 connected\n' +
        'd :0@0 master,noaddr - 0 0 3 disconnected\n',
    );
    const view = readView([info('ok', 7), slots, nodes], '10.0.0.1:7000');
    expect(view).toMatchObject({ epoch: 7, isWorking: true, primaries: ['10.0.0.1:7000', '::1:7001'] });
    expect([0, 99, 100, 199, 200, 16_383].map((slot) => view.owners[slot])).toEqual([
      '10.0.0.1:7000',
      '10.0.0.1:7000',
      undefined,
      undefined,
      '::1:7001',
      '::1:7001',
    ]);
    for (const name of ['10.0.0.4:7003', '10.0.0.9:7009', 'redis-b.local:7001'])
      expect(view.known).toContain(name);
    // the port of one node on the host of another is neither
    expect(view.known).not.toContain('10.0.0.1:7009');
  });

  test.each([null, '', '?'])('a node whose host is told as %j is where the cluster was asked', (host) => {
    const nodes = text('a 10.0.0.1:7002@1 master - 0 0 1 c 0-16383\nb 10.0.0.1:7003@1 master - 0 0 1 c\n');
    const view = readView([info('ok', 1), [range(0, 16_383, [host, 7002])], nodes], 'balancer:7000');
    expect(view.primaries).toEqual(['balancer:7002']);
    expect(view.known).toContain('balancer:7003');
  });

  test('is none when the node refuses to tell', () => {
    const refused = new RespError('ERR This instance has cluster support disabled');
    expect(() => readView([refused, refused, refused], 'a:1')).toThrow('cluster support disabled');
  });

  test('of several, the newest of a node that works is the one to go by', () => {
    const view = (state: string, epoch: number) => readView([info(state, epoch), [], text('')], 'a:1');
    const views = [view('ok', 5), view('fail', 9), view('ok', 6)];
    expect(newestView(views)).toBe(views[2]);
    expect(newestView([])).toBeUndefined();
  });
});

test.each([
  ['MOVED 3999 127.0.0.1:6381', { slot: 3999, to: '127.0.0.1:6381', asking: false }],
  ['ASK 1 ::1:7000', { slot: 1, to: '::1:7000', asking: true }],
  ['MOVED 5 :7001', { slot: 5, to: 'here:7001', asking: false }],
  ['MOVED 5', undefined],
  ['ERR MOVED 5 a:1', undefined],
])('%j leads to %j', (reply, expected) => {
  expect(redirectionOf(new RespError(reply), 'here:7000')).toEqual(expected);
  expect(redirectionOf(Buffer.from(reply), 'here:7000')).toBeUndefined();
});
