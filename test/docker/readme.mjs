import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { root } from '../../compose/state/profile.mjs';
import { demand } from './score.mjs';

/** The shell blocks below the heading 'Try it': the first writes, the second reads. */
function blocks() {
  const text = readFileSync(join(root, 'README.md'), 'utf8');
  const section = /^## Try it$([\s\S]*?)^## /m.exec(text)?.[1] ?? '';
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
}

/**
 * Runs the README's own lines.
 * @param {string} file a connection.env
 * @param {'write' | 'read'} what
 */
export async function readmeLines(file, what) {
  const [write = '', read = ''] = blocks();
  const lines = (what === 'write' ? write : read).replace(/^.*connection\.env.*$/m, '');
  // a consumer group of its own, so that each reading begins at the first record
  const script = `set -a; . '${file}'; set +a\n${lines.replace('/consume/readers/', `/consume/readers-${Date.now()}/`)}`;
  const said = await runProgram('bash', ['-c', script], { timeoutMs: 60_000 });
  const expected =
    what === 'write'
      ? ['"OK"', 'Success', '"offset"', '"messageId"']
      : ['"hello"', '"id":"a"', '"greetings"'];
  for (const word of expected) demand(said.includes(word), `no ${word} in ${said.slice(0, 600)}`);
}
