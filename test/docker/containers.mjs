import { setTimeout as sleep } from 'node:timers/promises';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { demand } from './score.mjs';

/** Only what hangs takes so long, however slow the machine is, in ms. */
export const hangsMs = 600_000;

/** Ends the program in a container as a fault would: process 1 is the init, its child the program. Works without a shell, too. */
const killers = [
  ['sh', '-c', 'kill -9 $(cat /proc/1/task/1/children)'],
  [
    'node',
    '-e',
    "process.kill(Number(require('fs').readFileSync('/proc/1/task/1/children', 'utf8').split(' ')[0]), 'SIGKILL')",
  ],
];

/** What the checks ask of an engine. @param {Record<string, string>} env of its client */
export function containers(env) {
  /** @param {string[]} args */
  const docker = (args, timeoutMs = hangsMs) => runProgram('docker', args, { env, timeoutMs });
  const lines = async (args) => (await docker(args)).split('\n').filter((line) => line !== '');
  const inspect = async (id) => JSON.parse(await docker(['inspect', id]))[0];
  const labelled = (project) => ['--filter', `label=com.docker.compose.project=${project}`];
  return {
    docker,
    inspect,
    of: (project) => lines(['ps', '--all', '--quiet', ...labelled(project)]),
    anonymousVolumes: async () =>
      (await lines(['volume', 'ls', '--quiet'])).filter((name) => /^[0-9a-f]{64}$/.test(name)).sort(),
    networks: (project) => lines(['network', 'ls', '--quiet', ...labelled(project)]),
    volumes: (project) => lines(['volume', 'ls', '--quiet', ...labelled(project)]),

    /** @throws {Error} when a port of a container is open to other machines */
    async demandLoopback(ids) {
      for (const id of ids) {
        const { Name, NetworkSettings } = await inspect(id);
        const open = Object.values(NetworkSettings.Ports ?? {})
          .flatMap((bindings) => bindings ?? [])
          .filter(({ HostIp }) => HostIp !== '127.0.0.1');
        demand(open.length === 0, `${Name} listens on ${JSON.stringify(open)}`);
      }
    },

    /** Kills what runs in a container and waits until the engine has started it again and it is healthy. */
    async crash(id) {
      const { RestartCount: before, Config } = await inspect(id);
      const killer = /node/.test(Config.Cmd?.[0] ?? '') ? killers[1] : killers[0];
      await docker(['exec', id, ...killer]).catch(() => undefined);
      for (const end = Date.now() + hangsMs; Date.now() < end; ) {
        const { RestartCount, State } = await inspect(id);
        if (RestartCount > before && State.Health?.Status === 'healthy') return;
        await sleep(500);
      }
      throw new Error('it did not come back');
    },
  };
}

/**
 * Waits until a page answers with 200.
 * @param stillWorth called before each further try; throws where none can succeed
 * @throws {Error} with what it said last
 */
export async function becomes200(url, limitMs, stillWorth = async () => {}) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const said = await fetch(url, { signal: AbortSignal.timeout(3_000) }).then(
      async (answer) => `${answer.status} ${await answer.text()}`,
      (error) => String(error.cause ?? error),
    );
    if (said.startsWith('200')) return;
    demand(Date.now() < deadline, `${url}: ${said.slice(0, 400)}`);
    await stillWorth();
    await sleep(250);
  }
}
