import { InterimResponses } from '../../../../src/lib/outbound/unasked-continue.js';

const FINAL = 'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHTTP/1.1 100';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </HTTP/1.1 100>\r\n\r\n';

function scanned(text: string, size: number): string {
  const interim = new InterimResponses();
  interim.expect();
  let read = '';
  for (let at = 0; at < text.length; at += size) {
    const chunk = Buffer.from(text.slice(at, at + size));
    interim.scan(chunk);
    read += chunk.toString();
    // a request's body may be sent in several pieces
    if (read.length < text.length - FINAL.length) interim.expect();
  }
  return read;
}

test.each([
  CONTINUE,
  CONTINUE + CONTINUE,
  HINTS + CONTINUE,
  `HTTP/1.1 100 Continue\nA: b\n\n\r\n${HINTS}${CONTINUE}`,
  'HTTP/1.0 102 Processing\r\n\r\nHTTP/1.0 100\r\n\r\n',
  '',
])('each 100 before the final response is read as 103, whatever the chunks: %j', (before) => {
  const wanted = before.replaceAll(/^(HTTP\/1\.[01] 10)0/gm, '$13') + FINAL;
  for (let size = 1; size <= before.length + FINAL.length; size++)
    expect([size, scanned(before + FINAL, size)]).toEqual([size, wanted]);
});

test.each(['HTTP/1.1 101 Other\r\n\r\nHTTP/1.1 100 x', '12345678 100 100', 'HTTP/1.1 400 100\r\n\r\n'])(
  'nothing else is changed: %j',
  (text) => {
    for (let size = 1; size <= text.length; size++) expect(scanned(text, size)).toBe(text);
  },
);
