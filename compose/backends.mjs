import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { backends } from './backends/backends.mjs';
import { quoted } from './launcher/card.mjs';
import { testPrograms } from './native/test-programs.mjs';
import { withLock } from './processes/lock.mjs';

// The backends by themselves, for developers and tests.

const usage = `node compose/backends.mjs ACTION [--profile dev|test] [NAME ...]
  start    bring them up (default: all four)    stop    end them
  kill     SIGKILL                              status  what runs and answers, as JSON
  pause    SIGSTOP                              resume  SIGCONT
  env      their addresses and what the tests need beside, as NAME=value lines of a shell`;

/** Actions that change what runs wait for each other. */
const lockOf = (set) => join(set.profile.run, 'lock');

const actions = {
  async start(set, names) {
    const progress = (name, line) => console.error(`${name}: ${line}`);
    const result = await withLock(lockOf(set), () => set.start(names, progress));
    console.log(JSON.stringify(result, null, 2));
    return Object.values(result).some((row) => row.state === 'failed') ? 1 : 0;
  },
  async stop(set, names) {
    console.log(JSON.stringify(await withLock(lockOf(set), () => set.stop(names))));
  },
  async status(set) {
    console.log(JSON.stringify(await set.status(), null, 2));
  },
  async env(set, names) {
    const variables = { ...set.urls(names), ...(await testPrograms(set.profile, () => undefined)) };
    for (const [key, value] of Object.entries(variables)) console.log(`${key}=${quoted(value)}`);
  },
};

for (const action of ['kill', 'pause', 'resume']) {
  actions[action] = async (set, names) => {
    if (names === undefined) throw new Error(`name the backend to ${action}`);
    for (const name of names) await set[action](name);
  };
}

async function main(argv) {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: { profile: { type: 'string', default: 'dev' } },
  });
  const [action = '', ...names] = positionals;
  if (!Object.hasOwn(actions, action)) throw new Error(usage);
  process.exitCode = await actions[action](
    await backends(values.profile),
    names.length > 0 ? names : undefined,
  );
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
