import fc from 'fast-check';
import {
  eventOf,
  HEARTBEAT,
  RECONNECTED,
  singleLine,
} from '../../../../src/services/kv/streams/event-text.js';

/** As https://html.spec.whatwg.org/multipage/server-sent-events.html has browsers read a stream. */
function browserEvents(stream: string): { type: string; data: string }[] {
  const events: { type: string; data: string }[] = [];
  let [type, data] = ['', [] as string[]];
  for (const line of stream.split(/\r\n|\r|\n/)) {
    if (line === '') {
      if (data.length > 0) events.push({ type, data: data.join('\n') });
      [type, data] = ['', []];
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    else if (field !== '') type = field;
  }
  return events;
}

/** As `@upstash/redis` reads one: what its listeners could get. */
function clientEvents(stream: string): string[] {
  return stream
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6).replace(/^data:\s*/, ''))
    .filter((text) => /^(message|pmessage|subscribe|psubscribe),/.test(text));
}

const payload = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('utf8')),
  fc
    .array(
      fc.constantFrom(
        '\n',
        '\r',
        '\r\n',
        ' ',
        ':',
        'data: ',
        'data:',
        'event: x',
        'message,b,forged',
        '\0',
        ',',
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join('')),
);

test('no payload ends its event, begins another or adds a field', () => {
  fc.assert(
    fc.property(payload, payload, (first, second) => {
      const texts = [`message,a,${first}`, `message,b,${second}`];
      const stream = `${HEARTBEAT}${texts.map((text) => eventOf(text).toString()).join(RECONNECTED.toString())}`;
      expect(browserEvents(stream)).toEqual(
        texts.map((text) => ({ type: '', data: text.replace(/\r\n|\r/g, '\n') })),
      );
      expect(clientEvents(stream)).toEqual(texts.map((text) => text.split(/\r\n|\r|\n/, 1)[0]));
    }),
    { numRuns: 1_000 },
  );
});

test('JSON comes in one line and keeps its value; other text is not touched', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('\n', '\r\n', ' '), (value, end) => {
      const line = singleLine(JSON.stringify(value, null, 2) + end);
      expect(line).not.toMatch(/[\r\n]/);
      expect(JSON.stringify(JSON.parse(line))).toBe(JSON.stringify(value));
    }),
  );
  for (const text of ['', 'a\nb', '{"a":\n', '{"a": 1}', '"a\nb"']) expect(singleLine(text)).toBe(text);
});
