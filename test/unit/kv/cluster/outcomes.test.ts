import { HttpError } from '../../../../src/http/errors.js';
import { sum } from '../../../../src/services/kv/cluster/joins.js';
import { outcomeOfJoined, repliesOf } from '../../../../src/services/kv/cluster/outcomes.js';
import type { Row } from '../../../../src/services/kv/commands/commands.js';
import { notConnected, outcomeUnknown } from '../../../../src/services/kv/errors.js';
import { RespError } from '../../../../src/services/kv/resp/resp-decoder.js';

const rowThat = (reads: boolean) => ({ command: ['X'], rule: { reads } }) as unknown as Row;

function thrownBy(work: () => unknown): HttpError {
  try {
    work();
  } catch (error) {
    if (error instanceof HttpError) return error;
  }
  throw new Error('no HttpError');
}

describe('a row that concerns several primaries', () => {
  test('has the joined reply when all answered', () => {
    expect(outcomeOfJoined(rowThat(false), sum, ['1', '2', '9007199254740993'])).toBe('9007199254740996');
  });

  test('that writes has an unknown outcome when some did not answer, even if these did nothing', () => {
    expect(outcomeOfJoined(rowThat(false), sum, ['1', notConnected()])).toMatchObject({
      code: 'outcome_unknown',
    });
  });

  test('did nothing when none could be reached', () => {
    const outcome = outcomeOfJoined(rowThat(false), sum, [notConnected(), notConnected()]);
    expect(outcome).toMatchObject({ code: 'backend_unavailable' });
  });

  test('that writes has an unknown outcome too when a node could not run it now and others did', () => {
    const down = new RespError('CLUSTERDOWN Hash slot not served');
    expect(outcomeOfJoined(rowThat(false), sum, ['1', down])).toMatchObject({ code: 'outcome_unknown' });
    expect(outcomeOfJoined(rowThat(false), sum, [down, down])).toBe(down);
  });

  test('that reads can be repeated', () => {
    expect(outcomeOfJoined(rowThat(true), sum, ['1', notConnected()])).toMatchObject({
      code: 'backend_unavailable',
    });
  });
});

describe('the rows of a request', () => {
  test('are errors where there was no reply, while others have theirs', () => {
    const replies = repliesOf(['1', notConnected(), outcomeUnknown(), null]);
    expect(replies).toEqual([
      '1',
      new RespError('ERR Redis is not available; nothing was executed'),
      new RespError(expect.stringMatching(/^ERR .*unknown/) as unknown as string),
      null,
    ]);
  });

  test('fail together when none got a reply; the promise that nothing ran is given for all or none', () => {
    expect(thrownBy(() => repliesOf([notConnected(), notConnected()])).code).toBe('backend_unavailable');
    expect(thrownBy(() => repliesOf([notConnected(), outcomeUnknown()])).code).toBe('outcome_unknown');
  });

  test('fail together when the user is not let in', () => {
    expect(thrownBy(() => repliesOf(['1', new HttpError('unauthorized')])).code).toBe('unauthorized');
  });
});
