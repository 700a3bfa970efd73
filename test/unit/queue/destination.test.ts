import fc from 'fast-check';
import { HttpError } from '../../../src/http/errors.js';
import { AddressGuard } from '../../../src/lib/outbound/address-guard.js';
import { checkDestination, cutTarget } from '../../../src/services/queue/intake/destination.js';

const cut = (target: string) => {
  const { destination, settings } = cutTarget(target);
  return { destination, settings: Object.fromEntries(settings) };
};

describe('cutting the destination from the request target', () => {
  it.each([
    ['/https://example.com', 'https://example.com'],
    ['/https://example.com/', 'https://example.com/'],
    ['/https://example.com/a%2Fb//c?x=1&y=%20&x=2', 'https://example.com/a%2Fb//c?x=1&y=%20&x=2'],
    ['/https://user:pass@example.com:8443/a', 'https://user:pass@example.com:8443/a'],
    ['/https://example.com?', 'https://example.com?'],
    ['/https://example.com?&&a', 'https://example.com?&&a'],
    ['/https:/example.com/a', 'https://example.com/a'],
    ['/https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc+d', 'https://example.com/a?b=c+d'],
    ['/https:%2F%2Fexample.com%2Fa', 'https://example.com/a'],
    ['/HTTP://Example.com/A', 'HTTP://Example.com/A'],
    ['/my-group', 'my-group'],
    ['', ''],
    ['/', ''],
  ])('%s', (target, destination) => {
    expect(cut(target)).toEqual({ destination, settings: {} });
  });

  it("takes the service's own keys out of the query and leaves the others as they are", () => {
    expect(cut('/https://e.com/p?a=1&Upstash-Retries=3&b=%2B+&qstash_token=t&service-delay=1%6d&c')).toEqual({
      destination: 'https://e.com/p?a=1&b=%2B+&c',
      settings: { 'upstash-retries': '3', qstash_token: 't', 'service-delay': '1m' },
    });
    expect(cut('/https://e.com/p?upstash-forward-x=a+b%2Bc')).toEqual({
      destination: 'https://e.com/p',
      settings: { 'upstash-forward-x': 'a b+c' },
    });
    expect(cut('/https://e.com/p?%zz=1&upstash-delay=%zz').settings).toEqual({ 'upstash-delay': '%zz' });
  });

  it('keeps any destination whose query has no key of the service exactly as sent', () => {
    const part = fc.stringMatching(/^[A-Za-z0-9._~!$'()*,;:@%=/?-]{0,30}$/);
    fc.assert(
      fc.property(part, fc.array(part, { minLength: 1, maxLength: 4 }), (path, query) => {
        fc.pre(!path.includes('?') && !query.some((pair) => /^(%|u|s|q)/i.test(pair)));
        const destination = `https://example.com/${path}?${query.join('&')}`;
        expect(cutTarget(`/${destination}`).destination).toBe(destination);
      }),
    );
  });
});

describe('checking a destination', () => {
  const guard = new AddressGuard(['10.0.0.1']);
  const check = (text: string) => checkDestination(text, 'The destination', guard);

  it.each([
    'https://example.com',
    'http://e.com:81/a?b#c',
    'https://m%C3%BCller.example/',
    'http://10.0.0.1/',
    'http://no.such.host.invalid/',
  ])('takes %s', (text) => {
    expect(check(text).href).toMatch(/^https?:/);
  });

  it.each([
    ['ftp://example.com/', /scheme ftp/],
    ['file:///etc/passwd', /scheme file/],
    ['javascript:alert(1)', /scheme javascript/],
    ['example.com/path', /not an absolute URL/],
    ['/relative', /not an absolute URL/],
    ['//example.com/', /not an absolute URL/],
    ['https://', /not a valid URL/],
    ['https:///path', /not a valid URL/],
    ['https://exa mple.com/', /percent-encoded/],
    ['https://example.com/ä', /percent-encoded/],
    ['https://example.com/\r\nX: y', /percent-encoded/],
    ['https://example.com:99999/', /not a valid URL/],
    ['https://[::1', /not a valid URL/],
    ['http://127.0.0.1/', /127\.0\.0\.1 is not a public address.*queue\.allowedDestinations/],
    ['http://2130706433/', /127\.0\.0\.1 is not a public address/],
    ['http://user:secret@192.168.1.1/', /192\.168\.1\.1 is not a public address/],
    ['http://localhost:3000/', /not a public address/],
  ])('refuses %s', (text, reason) => {
    expect(() => check(text)).toThrow(HttpError);
    expect(() => check(text)).toThrow(reason);
    expect(() => check(text)).not.toThrow(/secret/);
  });
});
