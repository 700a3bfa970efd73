import { describeError } from '../../../src/lib/logger.js';

it('takes message, code and causes of an error, and nothing that a driver hangs on it', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), {
    code: 'ECONNREFUSED',
    command: { args: ['hunter2'] },
  });
  const error = Object.assign(new Error('no connection', { cause }), {
    config: { password: 'hunter2' },
    detail: 'Key (a)=(hunter2)',
  });
  const described = describeError(error);
  expect(described).toMatchObject({ message: 'no connection', cause: { code: 'ECONNREFUSED' } });
  expect(JSON.stringify(described)).not.toContain('hunter2');
});

it('ends at five causes', () => {
  const loop = new Error('again');
  loop.cause = loop;
  expect(JSON.stringify(describeError(loop)).match(/"again"/g)).toHaveLength(6);
});
