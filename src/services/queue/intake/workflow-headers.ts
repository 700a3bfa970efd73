import { HttpError } from '../../../http/errors.js';

/** Instructions of the workflow SDKs, alone or for a callback; `forward-` ones are headers of a delivery like others. */
const WORKFLOW = /^(upstash|service)-((failure-)?callback-)*(workflow-.+|feature-set)$/i;

/**
 * Refuses what speaks of a workflow run and names none. The SDKs do not read the errors of single entries of a batch: a run
 * would seem to be started and nothing would run; and they take a 400 for the end of the run.
 * @param names of headers or query keys
 * @throws HttpError 412
 */
export function refuseWorkflows(names: Iterable<string>): void {
  for (const name of names)
    if (WORKFLOW.test(name))
      throw new HttpError(
        'not_served',
        `${name}: belongs to a workflow run, which upstash-workflow-runid has to name; nothing of the request was sent.`,
      );
}
