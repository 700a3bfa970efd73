import { FuzzConnection } from './client.mjs';
import { judge } from './judge.mjs';

/**
 * @typedef {ReturnType<typeof import('./generator.mjs').makeRequest>} FuzzRequest
 * @typedef {{ port: number, deadlineMs: number, seenTokens: Set<string>, outcomes: Map<string, number> }} Target
 *   `deadlineMs`: a reply, or the end of the connection, must have come by then
 */

/** One client: it keeps a connection as long as that is good for more requests. */
export class FuzzClient {
  #connection;
  #target;

  /** @param {Target} target */
  constructor(target) {
    this.#target = target;
  }

  /** Sends a request and judges what comes. @param {FuzzRequest} request @returns {Promise<string | undefined>} what is wrong */
  async perform(request) {
    if (request.fresh || this.#connection === undefined || this.#connection.ended) this.#renew();
    const connection = this.#connection;
    connection.write(request.wire);
    const problem = await this.#expect(connection, request);
    if (request.fresh || problem !== undefined) this.close();
    return problem;
  }

  close() {
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  #renew() {
    this.close();
    this.#connection = new FuzzConnection(this.#target.port);
  }

  async #expect(connection, { expected, ending }) {
    const { deadlineMs } = this.#target;
    if (ending === 'hang up') {
      // what is still in this process would never be sent
      await new Promise((resolve) => setImmediate(resolve));
      return undefined;
    }
    if (ending === 'hang up in the reply') {
      await connection.something(deadlineMs);
      return undefined;
    }
    if (ending === 'end') connection.end();
    for (const [i, one] of expected.entries()) {
      const reply = await connection.reply(one.head === true, deadlineMs);
      const problem = this.#problemOf(reply, one);
      if (problem !== undefined) return expected.length > 1 ? `reply ${i}: ${problem}` : problem;
      if (reply.kind !== 'reply') return undefined;
      if (reply.headers.get('connection')?.toLowerCase() === 'close') {
        this.#connection = undefined;
        connection.destroy();
        // what Node cannot parse ends the connection behind the replies before it
        return i + 1 === expected.length ? undefined : `closed after ${i + 1} of ${expected.length} replies`;
      }
    }
    return connection.hasMore && ending === undefined && !expected.at(-1).mayEnd
      ? 'bytes behind the last reply'
      : undefined;
  }

  #problemOf(reply, expected) {
    const { outcomes } = this.#target;
    const outcome = reply.kind === 'reply' ? String(reply.status) : reply.kind;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (reply.kind === 'reply') return judge(reply, expected) ?? this.#tokenProblem(reply);
    if (reply.kind === 'ended')
      return expected.mayEnd && reply.received.length === 0
        ? undefined
        : `ended without a reply${quoted(reply)}`;
    if (reply.kind === 'hung') return `nothing within ${this.#target.deadlineMs} ms${quoted(reply)}`;
    return reply.kind === 'stream' ? this.close() : `no HTTP${quoted(reply)}`;
  }

  #tokenProblem({ headers }) {
    const token = headers.get('upstash-sync-token');
    if (token === undefined) return undefined;
    const { seenTokens } = this.#target;
    if (seenTokens.has(token)) return `the sync token ${token} came a second time`;
    seenTokens.add(token);
    return undefined;
  }
}

function quoted({ received }) {
  return received.length === 0 ? '' : `, but ${JSON.stringify(received.subarray(0, 200).latin1Slice())}`;
}
