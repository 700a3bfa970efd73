import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute, RouteContext } from '../../../http/route.js';
import { WHOLE_BYTES } from '../../../lib/json/sliced-json.js';
import type { KvDeps } from '../deps.js';
import type { Freshness } from '../replicas/sync-token.js';
import { isPassing, isPassingForScript } from '../resp/passing.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { admit } from './admitted-row.js';
import { formatOf, singleAnswer } from './answer-format.js';
import { answerRows } from './answer-rows.js';
import { handlePipeline, handleTransaction } from './batch-handlers.js';
import { commandOfJson } from './json-arguments.js';
import { largeCommandOfJson } from './large-arguments.js';
import { commandOfPath } from './path-arguments.js';
import { isSpecial } from './prepared-row.js';
import { tooLargeCommand } from './request-limits.js';
import { beginDeadline, countReplies, replied, send } from './sending.js';
import { handleMonitor, handlePsubscribe, handleSubscribe } from './stream-handlers.js';

type Handle = RawRoute<KvDeps>['handle'];

/** POST: the body is the command. */
export const handleCommand: Handle = (request, context, deps) => {
  const { body } = request;
  if (body.length > WHOLE_BYTES) return handleLargeCommand(request, context, deps);
  return runCommand(commandOfJson(body), request, context, deps);
};

const handleLargeCommand: Handle = async (request, context, deps) => {
  const command = await largeCommandOfJson(request.body, deps.limits);
  beginDeadline(context, deps);
  return runCommand(command, request, context, deps);
};

/** The command is in the path; POST and PUT append their body to it. */
export const handlePath: Handle = (request, context, deps) => {
  if (request.target.startsWith('//')) {
    const endpoint = doubledSlash(request);
    if (endpoint !== undefined) return endpoint(request, context, deps);
  }
  if (request.body.length > 0 && request.method === 'GET')
    throw new HttpError('invalid_request', 'ERR a body needs the method POST or PUT');
  return runCommand(commandOfPath(request.target, request.body), request, context, deps);
};

const STREAMS: ReadonlyMap<string, Handle> = new Map([
  ['subscribe', handleSubscribe],
  ['psubscribe', handlePsubscribe],
  ['monitor', handleMonitor],
]);

/** Clients that join a base URL which ends in a slash ask for `//pipeline`. */
function doubledSlash({ target, method }: RawRequest): Handle | undefined {
  const [, name = '', rest = ''] = /^\/\/([a-z-]*)(.*)$/s.exec(target) ?? [];
  const stream = STREAMS.get(name);
  if (stream !== undefined && method !== 'PUT' && /^([/?]|$)/.test(rest))
    return (request, context, deps) => stream({ ...request, target: rest }, context, deps);
  if (method !== 'POST' || !/^\/?(\?|$)/.test(rest)) return undefined;
  if (name === '') return handleCommand;
  if (name === 'pipeline') return handlePipeline;
  return name === 'multi-exec' ? handleTransaction : undefined;
}

function runCommand(
  command: Command,
  request: RawRequest,
  context: RouteContext,
  deps: KvDeps,
): Promise<RawReply> {
  const { client, quota, limits } = deps;
  const format = formatOf(request);
  const tooLarge = tooLargeCommand(command, limits);
  if (tooLarge !== undefined) throw new HttpError('payload_too_large', tooLarge);
  const row = admit(command, context, deps);
  if (typeof row === 'string') throw new HttpError('invalid_request', row);
  if (!quota.grantAll(1)) throw quota.exceeded();
  const finish = (replies: RespValue[], freshness?: Freshness) => {
    countReplies([row], replies);
    const answer = singleAnswer(
      replies[0],
      format,
      row.rule.lane === 'scripts' ? isPassingForScript : isPassing,
    );
    return replied(answer, [row], context, deps, freshness);
  };
  if (!isSpecial(row, client.options.emulations)) return send([row], request, context, deps, finish);
  return answerRows([row], client, context).then(finish);
}
