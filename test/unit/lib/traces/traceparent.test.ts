import { readTraceparent } from '../../../../src/lib/traces/span.js';
import { traceSettings } from '../../../../src/lib/traces/trace-settings.js';

const [TRACE, SPAN] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];

it.each([
  [`00-${TRACE}-${SPAN}-01`, true],
  [`00-${TRACE}-${SPAN}-00`, false],
  [`00-${TRACE}-${SPAN}-03`, true],
  [`01-${TRACE}-${SPAN}-01-of-a-later-version`, true],
])('%s is a trace, taken: %s', (header, sampled) => {
  expect(readTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
});

it.each([
  undefined,
  '',
  'nonsense',
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01${'-'.repeat(10)}\n`,
])('%j is none', (header) => {
  expect(readTraceparent(header)).toBeUndefined();
});

it('what is no address or no header is refused', () => {
  expect(() => traceSettings.parse({ endpoint: 'collector:4318' })).toThrow(/expected a URL/);
  expect(() => traceSettings.parse({ headers: 'authorization' })).toThrow(/name=value/);
  expect(() => traceSettings.parse({ headers: 'a=b\r\nc: d' })).toThrow(/name=value/);
  expect(traceSettings.parse({ endpoint: 'https://x/v1/traces', headers: 'a=b c,d=' })).toMatchObject({
    sample: 1,
  });
});
