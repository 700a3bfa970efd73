import type { RespError } from './resp-decoder.js';

/** What EXEC puts before the reason for which it was refused itself. */
const ABORTED = 'EXECABORT Transaction discarded because of: ';

const PASSING = /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MISCONF|NOREPLICAS) /;

/**
 * The server's own words for a command that it does not begin now, Redis' and Valkey's. A script may answer whatever it
 * likes: what is not one of these may be its own error, or that of a command within it, and then it ran.
 */
const NOT_BEGUN =
  /^(LOADING \w+ is loading the dataset in memory|BUSY \w+ is busy running a (script|module)|MASTERDOWN Link with MASTER is down and |CLUSTERDOWN (Hash slot not served|The cluster is down)|TRYAGAIN Multiple keys request during rehashing)/;

/** Redis cannot do it now: not the command is at fault, and nothing was executed. */
export function isPassing({ text }: RespError): boolean {
  return PASSING.test(reasonIn(text));
}

/** As `isPassing`, of the reply to a script or a function. */
export function isPassingForScript({ text }: RespError): boolean {
  return NOT_BEGUN.test(text);
}

/** A right that the user lacks, or a command that the server does not have: it holds until somebody changes it. */
export function isLasting({ text }: RespError): boolean {
  return /^(NOPERM|ERR) /.test(reasonIn(text));
}

function reasonIn(text: string): string {
  return text.startsWith(ABORTED) ? text.slice(ABORTED.length) : text;
}
