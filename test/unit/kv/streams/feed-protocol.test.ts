import { RespStatus } from '../../../../src/services/kv/resp/resp-decoder.js';
import { MONITOR, PUBSUB } from '../../../../src/services/kv/streams/feed-protocol.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const textOf = (push: { event: Buffer } | undefined) => push?.event.toString();

test('messages are told from replies, and keep the bytes of their names apart', () => {
  const [a, b] = ['\xff', '\xfe'].map((name) => PUBSUB.read([bytes('message'), bytes(name), bytes('x')]));
  expect(textOf(a)).toBe('data: message,\ufffd,x\n\n');
  expect(a?.topic).not.toBe(b?.topic);
  const matched = PUBSUB.read([bytes('pmessage'), bytes('p*'), bytes('p1'), bytes('a,b')]);
  expect([matched?.topic, textOf(matched)]).toEqual(['psubscribe:p*', 'data: pmessage,p*,p1,a,b\n\n']);
  for (const reply of [
    [bytes('subscribe'), bytes('message'), '1'],
    [bytes('pong'), bytes('message')],
    new RespStatus(bytes('PONG')),
    bytes('message'),
    [],
    undefined,
  ])
    expect(PUBSUB.read(reply)).toBeUndefined();
});

test.each([
  ['1.5 [0 127.0.0.1:1] "AUTH" "secret"', false],
  ['1.5 [0 [::1]:1] "auth" "user" "secret"', false],
  ['1.5 [0 unix:/tmp/a b.sock] "HELLO" "2" "AUTH" "user" "secret"', false],
  ['1.5 [0 127.0.0.1:1] "PING" "portico:pulse"', false],
  ['1.5 [0 127.0.0.1:1] "PING" "portico:pulse" "x"', true],
  ['1.5 [0 127.0.0.1:1] "PING"', true],
  ['1.5 [0 lua] "SET" "a] \\"auth\\"" "\\"PING\\" \\"portico:pulse\\""', true],
  ['1.5 [0 127.0.0.1:1] "AUTHORS"', true],
])('the monitor and the line %s', (line, isShown) => {
  const push = MONITOR.read(new RespStatus(bytes(line)));
  if (isShown) expect([push?.topic, textOf(push)]).toEqual(['monitor:', `data: ${line}\n\n`]);
  else expect(push?.topic).toBe('');
});

test('replies on the connection of a monitor', () => {
  for (const reply of [new RespStatus(bytes('OK')), bytes('portico:pulse'), new RespStatus(bytes(''))])
    expect(MONITOR.read(reply)).toBeUndefined();
});
