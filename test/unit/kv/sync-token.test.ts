import fc from 'fast-check';
import { readReplication } from '../../../src/services/kv/replicas/replication.js';
import { freshnessOf, syncTokens } from '../../../src/services/kv/replicas/sync-token.js';
import { RespError } from '../../../src/services/kv/resp/resp-decoder.js';

const history = fc.stringMatching(/^[0-9a-f]{16}$/);
const offset = fc.integer({ min: 0, max: 10 ** 15 - 1 });

describe('a sync token', () => {
  it('says what it was made of, and is never the same', () => {
    const next = syncTokens('0123456789abcdef');
    const seen = new Set<string>();
    const freshness = fc.oneof(
      fc.constantFrom('any' as const, 'unknown' as const),
      fc.record({ history, offset }, { noNullPrototype: true }),
    );
    fc.assert(
      fc.property(freshness, (value) => {
        const token = next(value);
        expect(freshnessOf(token)).toEqual(value);
        expect(seen.has(token)).toBe(false);
        seen.add(token);
      }),
    );
  });

  it('says nothing when it is no token of ours', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        expect(freshnessOf(text)).toBe('unknown');
      }),
    );
    for (const text of ['ab.1', 'ab.1.', 'ab.1.00', `ab.1.${'0'.repeat(16)}.1234567890123456`])
      expect(freshnessOf(text)).toBe('unknown');
    expect(freshnessOf(syncTokens('ab')())).toBe('unknown');
    expect([freshnessOf(undefined), freshnessOf('')]).toEqual(['any', 'any']);
  });
});

describe('the reply of INFO replication', () => {
  const info = (fields: Record<string, string>) =>
    Buffer.from(
      `# Replication\r\n${Object.entries(fields)
        .map(([name, value]) => `${name}:${value}\r\n`)
        .join('')}`,
    );
  const id = '0123456789abcdef0123456789abcdef01234567';

  it('tells what a primary has written, and what a replica has applied', () => {
    const master = { role: 'master', connected_slaves: '0', master_replid: id, master_repl_offset: '7' };
    expect(readReplication(info(master))).toEqual({
      role: 'master',
      linked: false,
      position: { history: id.slice(0, 16), offset: 7 },
    });
    const slave = {
      role: 'slave',
      master_link_status: 'up',
      slave_read_repl_offset: '9',
      slave_repl_offset: '8',
      master_replid: id,
      master_repl_offset: '9',
    };
    expect(readReplication(info(slave))).toEqual({
      role: 'slave',
      linked: true,
      position: { history: id.slice(0, 16), offset: 8 },
    });
    expect(readReplication(info({ ...slave, master_link_status: 'down' }))?.linked).toBe(false);
  });

  it('is not taken for more than it says', () => {
    for (const reply of [
      null,
      'text',
      new RespError('NOPERM no'),
      Buffer.from(''),
      info({ role: 'sentinel' }),
      info({ role: 'master', master_replid: id }),
      info({ role: 'master', master_repl_offset: '7' }),
      info({ role: 'master', master_replid: '', master_repl_offset: '7' }),
      info({ role: 'master', master_replid: id, master_repl_offset: 'many' }),
    ])
      expect(readReplication(reply)).toBeUndefined();
  });
});
