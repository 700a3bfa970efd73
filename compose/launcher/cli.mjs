import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { chooseEngine } from '../backends/engine.mjs';
import { ensureGateway } from '../install/ensure.mjs';
import { fetchedNode, fetchNode } from '../install/fetch-node.mjs';
import { goOnWith, isFit, needsProxyArguments } from '../install/node.mjs';
import { Interrupted } from '../processes/interruption.mjs';
import { createProgress } from '../processes/progress.mjs';
import { isInstalled, launcherVariables, profile, root } from '../state/profile.mjs';
import { demandFetch, preflight } from './preflight.mjs';

/** sysexits.h: a command line that cannot be understood. */
const EX_USAGE = 64;

class UsageError extends Error {}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** @typedef {{detach?: boolean, config?: string} & import('../conform/conform.mjs').ConformOptions & import('../move/import.mjs').ImportOptions} Options config: an absolute path */

/** Runs one of the gateway's own commands in this process, which goes on as the gateway. */
async function gateway(words, /** @type {Options} */ { config }) {
  await ensureGateway(createProgress());
  for (const name of launcherVariables) delete process.env[name];
  const main = join(root, 'dist/main.js');
  process.setSourceMapsEnabled(true);
  process.argv = [process.argv[0], main, ...words, ...(config === undefined ? [] : ['--config', config])];
  await import(pathToFileURL(main).href);
  return undefined;
}

/**
 * @typedef {object} Command
 * @property {string} synopsis
 * @property {string} about
 * @property {string[]} [options] beside `help`
 * @property {string[]} [words] that may follow it
 * @property {'start' | 'fetched' | 'any'} node start: one that fits is fetched after the checks of a start; fetched: after
 *   those of a fetch; any: what runs this does
 * @property {(options: Options, words: string[]) => Promise<number | undefined>} run
 *   resolves to the exit code, or to nothing where the process goes on
 */

/** @type {Record<string, Command>} */
const commands = {
  start: {
    synopsis: 'start [--detach] [--config FILE]',
    about: 'start backends and gateway; Ctrl-C stops them, with --detach `stop` does',
    options: ['detach', 'config'],
    node: 'start',
    run: async (options) => (await import('./start.mjs')).start(options),
  },
  stop: {
    synopsis: 'stop',
    about: 'stop what `start` started; data stay',
    node: 'any',
    run: async () => (await import('./stop.mjs')).stop(),
  },
  status: {
    synopsis: 'status',
    about: 'say what runs and answers',
    node: 'any',
    run: async () => (await import('./status.mjs')).status(),
  },
  doctor: {
    synopsis: 'doctor',
    about: 'look for what keeps it from starting or running, and say how to fix it',
    node: 'any',
    run: async () => (await import('./doctor.mjs')).doctor(),
  },
  serve: {
    synopsis: 'serve [--config FILE]',
    about: 'run the gateway alone, on the backends that the configuration names',
    options: ['config'],
    node: 'fetched',
    run: (options) => gateway(['run'], options),
  },
  check: {
    synopsis: 'check [--config FILE]',
    about: 'check a configuration; print addresses and backends as JSON',
    options: ['config'],
    node: 'fetched',
    run: (options) => gateway(['check'], options),
  },
  tokens: {
    synopsis: 'tokens [--config FILE]',
    about: 'print the tokens of every database and index, as JSON',
    options: ['config'],
    node: 'fetched',
    run: (options) => gateway(['tokens'], options),
  },
  openapi: {
    synopsis: 'openapi',
    about: 'print the OpenAPI document',
    node: 'fetched',
    run: (options) => gateway(['openapi'], options),
  },
  conform: {
    synopsis:
      'conform --service NAME --url URL --token TOKEN [--against URL2 --token2 TOKEN2] [--topic TOPIC]',
    about:
      'ask a server, or two side by side, whether it does what the contract says; of kv, vector, broker or queue',
    options: ['service', 'url', 'token', 'against', 'token2', 'topic'],
    node: 'any',
    run: async (options) => (await import('../conform/conform.mjs')).conform(options),
  },
  import: {
    synopsis:
      'import --service kv|vector --from URL --from-token TOKEN --to URL2 --to-token TOKEN2 [--match PATTERN] [--state FILE]',
    about: 'copy all keys, or all records of an index, from one server to another; started again, it goes on',
    options: ['service', 'from', 'from-token', 'to', 'to-token', 'match', 'state'],
    node: 'any',
    run: async ({ state, ...options }) => {
      const file = state === undefined ? {} : { state: resolve(userFolder(), state) };
      return (await import('../move/import.mjs')).importFrom({ ...options, ...file });
    },
  },
  settings: {
    synopsis: 'settings [yaml]',
    about: 'print every configuration key, as a table or as a file',
    words: ['yaml'],
    node: 'fetched',
    run: (options, words) => gateway(['settings', ...words], options),
  },
};

function help() {
  const rows = Object.values(commands).map(({ synopsis, about }) =>
    synopsis.length < 34
      ? `  portico ${synopsis.padEnd(34)}${about}`
      : `  portico ${synopsis}\n${' '.repeat(44)}${about}`,
  );
  return `portico ${version}: one HTTP front for Redis, Kafka, Postgres with pgvector, and RabbitMQ

${rows.join('\n')}
  portico --help                            print this
  portico --version                         print the version

State (programs, data, secrets, logs) is in $PORTICO_STATE_DIR, else in .portico of ${isInstalled ? 'the current folder' : 'this checkout'}.
Exit codes: 0 all is well; 1 something failed, or a service is not there (what could be started runs on, and the card
says which is missing); 3 nothing runs (status); 64 wrong command line; 78 wrong configuration; 130 interrupted.`;
}

/** Words of parseArgs end in hints for programmers. */
const firstSentence = (text) => text.split(/\. |\n/)[0].replace(/\.$/, '');

/** Options with a text, of `conform` and `import`. */
const texts = [
  ...['service', 'url', 'token', 'against', 'token2', 'topic'],
  ...['from', 'from-token', 'to', 'to-token', 'match', 'state'],
];

function parsed(argv) {
  try {
    return parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        detach: { type: 'boolean', short: 'd' },
        config: { type: 'string' },
        ...Object.fromEntries(texts.map((name) => [name, { type: /** @type {const} */ ('string') }])),
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    });
  } catch (error) {
    throw new UsageError(`${firstSentence(error.message)}; portico --help lists what there is.`);
  }
}

/** npm runs a checkout's scripts in its folder; a path is meant as seen from where the user stands. */
const userFolder = () => (isInstalled ? process.cwd() : (process.env.INIT_CWD ?? process.cwd()));

/**
 * @returns {{print: string} | {print: undefined, name: string, command: Command, words: string[], options: Options}}
 * @throws {UsageError} in one sentence
 */
function understood(argv) {
  const { values, positionals } = parsed(argv);
  const { help: wantsHelp, version: wantsVersion, ...options } = values;
  if (wantsHelp || wantsVersion) return { print: wantsHelp ? help() : version };
  const [name, ...words] = positionals;
  if (name === undefined) throw new UsageError(help());
  if (!Object.hasOwn(commands, name))
    throw new UsageError(`There is no command '${name}'; portico --help lists what there is.`);
  const command = /** @type {Command} */ (commands[name]);
  const wrong = Object.keys(options).find((option) => !command.options?.includes(option));
  if (wrong !== undefined) throw new UsageError(`portico ${name} has no option --${wrong}.`);
  const extra = words.find((word) => !command.words?.includes(word));
  if (extra !== undefined) throw new UsageError(`portico ${name} does not take '${extra}'.`);
  const config = options.config === undefined ? {} : { config: resolve(userFolder(), options.config) };
  return { print: undefined, name, command, words, options: { ...options, ...config } };
}

/** Goes on in a Node that the gateway is made for, where this is none. Returns where this one will do. */
async function onFitNode(command, options, argv) {
  const script = [join(root, 'compose/portico.mjs'), ...argv];
  if (!isFit(process.versions.node)) {
    const there = fetchedNode();
    if (there !== undefined) await goOnWith(there, script);
    if (command.node === 'any') return;
    if (command.node === 'start') {
      const p = profile('dev');
      await preflight(p, await chooseEngine(p), undefined, options.config);
    } else await demandFetch();
    await goOnWith(await fetchNode(), script);
  }
  if (command.node !== 'any' && needsProxyArguments()) await goOnWith(process.execPath, script);
}

async function run(argv) {
  // however open the shell leaves new files, other users may not change what says which programs are run and ended
  process.umask(process.umask() | 0o022);
  const asked = understood(argv);
  if (asked.print !== undefined) {
    console.log(asked.print);
    return 0;
  }
  const { name, command, words, options } = asked;
  try {
    await onFitNode(command, options, argv);
    return await command.run(options, words);
  } catch (error) {
    if (!(error instanceof Interrupted))
      console.error(`${name === 'start' ? 'Portico did not start: ' : ''}${error.message}`);
    return error instanceof Interrupted ? 130 : (error.exitCode ?? 1);
  }
}

/** @param {string[]} argv without Node and script */
export async function main(argv) {
  try {
    const code = await run(argv);
    if (code !== undefined) process.exit(code);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exit(EX_USAGE);
  }
}
