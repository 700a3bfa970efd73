import { createHash } from 'node:crypto';
import { keyword } from '../resp/keyword.js';
import type { Argument, Command } from '../resp/resp-encoder.js';
import { type Emulate, type Emulation, unchanged, withArgument } from './emulation.js';
import { ScriptDigests } from './script-digests.js';
import { withoutKeyLocking } from './shebang.js';

/**
 * Scripts that ask for `allow-key-locking` run without it, and keep the digest that their author computed. A process
 * that has not seen such a script passes its digest on, Redis says NOSCRIPT, and clients then send the text, as they
 * must after every restart of Redis.
 */
export function scriptEmulations(): ReadonlyMap<string, Emulate> {
  const digests = new ScriptDigests();
  const run: Emulate = (command) => {
    const script = strip(command[1], digests);
    return script && withArgument(command, 1, script.text);
  };
  const runByDigest: Emulate = (command) => {
    const digest = digests.find(command[1]);
    return digest === undefined ? undefined : withArgument(command, 1, digest);
  };
  const script: Emulate = (command) => {
    const subcommand = keyword(command, 1);
    if (subcommand === 'LOAD' && command.length === 3) return load(command, digests);
    return subcommand === 'EXISTS' ? exists(command, digests) : undefined;
  };
  return new Map([
    ['EVAL', run],
    ['EVAL_RO', run],
    ['EVALSHA', runByDigest],
    ['EVALSHA_RO', runByDigest],
    ['SCRIPT', script],
  ]);
}

interface StrippedScript {
  readonly text: Argument;
  /** Of the text that the client sent. */
  readonly sent: string;
  /** Of the text that Redis gets. */
  readonly stored: string;
}

function strip(script: Argument | undefined, digests: ScriptDigests): StrippedScript | undefined {
  const text = script === undefined ? undefined : withoutKeyLocking(script);
  if (script === undefined || text === undefined) return undefined;
  const sent = digestOf(script);
  const stored = digestOf(text);
  digests.remember(sent, stored);
  return { text, sent, stored };
}

function load(command: Command, digests: ScriptDigests): Emulation | undefined {
  const script = strip(command[2], digests);
  if (script === undefined) return undefined;
  const { text, sent, stored } = script;
  return {
    command: command.with(2, text),
    finish: (reply) =>
      reply instanceof Buffer && reply.toString('latin1') === stored ? Buffer.from(sent) : reply,
  };
}

function exists(command: Command, digests: ScriptDigests): Emulation | undefined {
  const sent = command.map((argument, i) => (i < 2 ? argument : (digests.find(argument) ?? argument)));
  return sent.every((argument, i) => argument === command[i])
    ? undefined
    : { command: sent, finish: unchanged };
}

/** SHA-1, because Redis names scripts by it. */
function digestOf(script: Argument): string {
  return createHash('sha1').update(script).digest('hex');
}
