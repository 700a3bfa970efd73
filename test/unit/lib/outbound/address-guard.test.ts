import fc from 'fast-check';
import { AddressGuard, isAllowEntry } from '../../../../src/lib/outbound/address-guard.js';

const closed = new AddressGuard([]);
const hostOf = (text: string) => new URL(`http://${text}/`).hostname;

describe('without permissions', () => {
  it.each([
    ...[
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '127.0.0.1.',
      '0',
      '0.0.0.0',
      '①②⑦.0.0.1',
    ],
    ...[
      '10.0.0.1',
      '100.64.0.1',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
      '192.0.0.1',
      '192.0.2.1',
    ],
    ...[
      '192.88.99.1',
      '192.168.0.1',
      '198.18.0.1',
      '198.19.255.255',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
    ],
    ...['239.255.255.255', '240.0.0.1', '255.255.255.255', '168.63.129.16', '100.100.100.200'],
    ...[
      '[::]',
      '[::1]',
      '[::7f00:1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::ffff:a9fe:a9fe]',
      '[0:0:0:0:0:0:0:1]',
    ],
    ...[
      '[64:ff9b::7f00:1]',
      '[64:ff9b:1::1]',
      '[100::1]',
      '[2001::1]',
      '[2001:db8::1]',
      '[2002:7f00:1::]',
      '[3fff::1]',
    ],
    ...['[5f00::1]', '[fc00::1]', '[fd00:ec2::254]', '[fe80::1]', '[fec0::1]', '[ff02::1]'],
    ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost'],
  ])('refuses http://%s/', (text) => {
    expect(closed.judgeHost(hostOf(text), 443)).toMatch(/is not a public address/);
  });

  it.each([
    '8.8.8.8',
    '172.15.0.1',
    '172.32.0.1',
    '100.63.0.1',
    '100.128.0.1',
    '192.0.1.1',
    '198.20.0.1',
    '223.255.255.255',
    '[2606:4700::1111]',
    '[::ffff:8.8.8.8]',
    'example.com',
    'localhost.example.com',
    '127.0.0.1.example.com',
  ])('passes http://%s/', (text) => {
    expect(closed.judgeHost(hostOf(text), 443)).toBeUndefined();
  });

  it('judges an address that a name resolves to, with the same rules', () => {
    expect(closed.judgeAddress('10.1.2.3', 'rebound.example.com', 443)).toMatch(
      /^10\.1\.2\.3 is not a public address/,
    );
    expect(closed.judgeAddress('fe80::1%eth0', 'rebound.example.com', 443)).toMatch(/link-local/);
    expect(closed.judgeAddress('93.184.216.34', 'example.com', 443)).toBeUndefined();
    expect(closed.judgeAddress('nonsense', 'example.com', 443)).toMatch(/not an IP address/);
  });

  it('refuses every IPv4 address in whichever IPv6 form hides it, exactly when it refuses the address', () => {
    const octet = fc.nat(255);
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
        const address = octets.join('.');
        const refused = closed.judgeHost(address, 443) !== undefined;
        expect(closed.judgeHost(hostOf(`[::ffff:${address}]`), 443) !== undefined).toBe(refused);
        // these two carry IPv4 through translators and old tunnels: never public, whatever is inside
        expect(closed.judgeHost(hostOf(`[::${address}]`), 443)).toBeDefined();
        expect(closed.judgeHost(hostOf(`[64:ff9b::${address}]`), 443)).toBeDefined();
      }),
    );
  });
});

describe('with permissions', () => {
  it('opens what lies in an allowed network, and nothing beside it', () => {
    const guard = new AddressGuard(['10.1.0.0/16', 'fd00:1::/32', '127.0.0.1']);
    expect(guard.judgeHost('10.1.255.1', 443)).toBeUndefined();
    expect(guard.judgeHost('[::ffff:a01:1]', 443)).toBeUndefined();
    expect(guard.judgeHost('10.2.0.1', 443)).toBeDefined();
    expect(guard.judgeHost('[fd00:1::5]', 443)).toBeUndefined();
    expect(guard.judgeHost('[fd00:2::5]', 443)).toBeDefined();
    expect(guard.judgeHost('127.0.0.2', 443)).toBeDefined();
    expect(guard.judgeHost('localhost', 443)).toBeUndefined();
    expect(guard.judgeAddress('127.0.0.1', 'localhost', 443)).toBeUndefined();
    expect(guard.judgeAddress('::1', 'localhost', 443)).toBeDefined();
  });

  it('opens with a port that one alone, and without one every port', () => {
    const guard = new AddressGuard(['10.0.0.0/8:8080', '[::1]:3000', 'receiver.internal:80', '192.168.0.1']);
    expect(guard.judgeHost('10.1.2.3', 8080)).toBeUndefined();
    expect(guard.judgeHost('10.1.2.3', 5432)).toMatch(/port 5432 of it is not among those allowed/);
    expect(guard.judgeHost('[::1]', 3000)).toBeUndefined();
    expect(guard.judgeHost('[::1]', 3001)).toBeDefined();
    expect(guard.judgeAddress('172.16.0.1', 'receiver.internal', 80)).toBeUndefined();
    expect(guard.judgeAddress('172.16.0.1', 'receiver.internal', 81)).toBeDefined();
    expect(guard.judgeHost('192.168.0.1', 1)).toBeUndefined();
    expect([...guard.ports].sort()).toEqual([3000, 80, 8080]);
  });

  it('opens private addresses of an allowed host name only under that name', () => {
    const guard = new AddressGuard(['Receiver.internal']);
    expect(guard.judgeAddress('10.0.0.1', 'receiver.internal', 443)).toBeUndefined();
    expect(guard.judgeAddress('10.0.0.1', 'RECEIVER.INTERNAL.', 443)).toBeUndefined();
    expect(guard.judgeAddress('10.0.0.1', 'other.internal', 443)).toBeDefined();
  });

  it.each([['0.0.0.0/0', '::/0'], ['receiver.internal'], ['168.0.0.0/8', '169.0.0.0/8', 'fe00::/8']])(
    'never opens metadata and link-local addresses by a wide permission: %s',
    (...entries) => {
      const guard = new AddressGuard(entries);
      for (const address of [
        '169.254.169.254',
        '168.63.129.16',
        '100.100.100.200',
        'fe80::1',
        'fd00:ec2::254',
        '::ffff:169.254.169.254',
      ])
        expect(guard.judgeAddress(address, 'receiver.internal', 443)).toMatch(/link-local or metadata/);
    },
  );

  it('opens them by an entry that means them', () => {
    const guard = new AddressGuard(['169.254.10.0/24', 'fe80::/10', '168.63.129.16']);
    expect(guard.judgeHost('169.254.10.1', 443)).toBeUndefined();
    expect(guard.judgeHost('169.254.11.1', 443)).toBeDefined();
    expect(guard.judgeHost('[fe80::1]', 443)).toBeUndefined();
    expect(guard.judgeHost('168.63.129.16', 443)).toBeUndefined();
  });
});

it.each([
  '10.0.0.0/8',
  '127.0.0.1',
  '::1',
  'fd00::/8',
  '::ffff:10.0.0.0/104',
  'localhost',
  'my-host.internal',
  'Example.COM',
  'a',
  'localhost:80',
  '10.0.0.0/8:8080',
  '[::1]:3000',
  '[fd00::/8]:3000',
])('takes %s as a permission', (entry) => {
  expect(isAllowEntry(entry)).toBe(true);
});

it.each([
  '',
  '10.0.0.0/33',
  '10.0.0/8',
  'http://localhost',
  'localhost:0',
  'localhost:65536',
  'localhost:',
  'fd00::/8:80',
  '10.0.0.0/33:80',
  '10.0.0.256',
  '*',
  'a b',
  '-a',
  '1',
  '0x7f.1.',
])('refuses %p as a permission', (entry) => {
  expect(isAllowEntry(entry)).toBe(false);
});
