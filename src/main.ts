#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { adminDocumentation } from './access/documented.js';
import { checkReport } from './config/check-report.js';
import { ConfigError, type ConfigSource, type LoadedConfig, loadConfig } from './config/load.js';
import { reloadConfig } from './config/reload.js';
import { type Config, enabledServices } from './config/schema.js';
import { settingsTable } from './config/settings-table.js';
import { settingsYaml } from './config/settings-yaml.js';
import { tokenReport } from './config/token-report.js';
import { unservedText } from './config/unserved-services.js';
import { describeConsole } from './console/describe.js';
import { isConsoleServed } from './console/settings.js';
import { createGateway, type Gateway } from './gateway.js';
import { openapiDocument } from './http/operations/openapi.js';
import { defaultServers, serversOf } from './http/operations/openapi-servers.js';
import { metricsAreOpen } from './http/operations/operations.js';
import { LogOutput } from './lib/log-output.js';
import { createLogger, type Logger } from './lib/logger.js';
import { ServiceManager } from './lib/service-manager.js';
import { inSlices, wholly } from './lib/slices.js';
import { cardsOfServices, describeServices } from './services/describe.js';
import { resetServices, type StartNote } from './services/reset.js';
import { Primary } from './workers/primary.js';
import { type WorkerLink, workerLink } from './workers/worker.js';

/** sysexits.h: a configuration error. */
const EX_CONFIG = 78;

const USAGE = `portico [run] [--config FILE]   run the gateway (default)
portico check [--config FILE]   check the configuration; print addresses and backends as JSON
portico openapi                 print the OpenAPI document
portico services               print what a start makes and shows for each service, as JSON
portico settings [yaml]         print every configuration key, as a table or as a file
portico tokens [--config FILE]  print the tokens of every database and index, as JSON
portico reset FILE              wipe what the services of a start hold, for tests; FILE is its run/gateway.json
`;

const DEFAULT_FILE = fileURLToPath(new URL('../config/portico.yaml', import.meta.url));

function packageVersion(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Where the build has put the console. */
const consoleFolder = fileURLToPath(new URL('console', import.meta.url));

const build = () => ({ version: packageVersion(), node: process.versions.node });

/** The document without a configuration, for whoever reads it. */
function defaultOpenapi(): string {
  const document = openapiDocument(
    [...describeServices(), adminDocumentation, describeConsole()],
    packageVersion(),
    defaultServers(),
  );
  return `${JSON.stringify(wholly(document), null, 2)}\n`;
}

/** The document of a gateway, as it serves it. */
function* servedOpenapi(config: Config): Generator<void, string> {
  const admin = config.admin.token === null ? [] : [adminDocumentation];
  const console = isConsoleServed(config.console, config.http.host) ? [describeConsole()] : [];
  const services = [...describeServices(enabledServices(config)), ...admin, ...console];
  const document = yield* openapiDocument(services, packageVersion(), serversOf(config.http));
  yield;
  return JSON.stringify(document);
}

const EXIT_AT_ONCE = 130;

/** So long the last lines of the log may take, in ms. */
const LAST_LINES_MS = 500;

const output = new LogOutput(1);

async function exit(code: number): Promise<void> {
  await output.settled(LAST_LINES_MS);
  process.exit(code);
}

async function run(file: string | undefined): Promise<void> {
  const link = workerLink(process.env);
  if (link !== undefined) {
    await work(link);
    return;
  }
  // from now on it ends nothing
  const hangUps = new HangUps();
  const loaded = load(file);
  const { config } = loaded;
  const log = createLogger(config.log.level, output);
  announce(loaded, log);
  const manager = ServiceManager.of(process.env, process.pid);
  const reload = (take: (config: Config) => void) => hangUps.handle(reloader(file, config, log, take));
  if (config.http.workers === 1) await serve(config, log, reload, manager);
  else await superviseWorkers(config, log, reload, manager);
}

/** SIGHUP, from the first moment; one that comes before anybody can act on it is kept. */
class HangUps {
  private kept = false;
  private act = (): void => {
    this.kept = true;
  };

  constructor() {
    process.on('SIGHUP', () => this.act());
  }

  handle(act: () => void): void {
    this.act = act;
    if (this.kept) act();
  }
}

/**
 * Reads the configuration again, files and variables that name files; one that is wrong changes nothing.
 * @param config what runs
 */
function reloader(file: string | undefined, config: Config, log: Logger, take: (config: Config) => void) {
  let current = config;
  return (): void => {
    try {
      const { config: next, changed, atRestart } = reloadConfig(current, sourceOf(file));
      take(next);
      current = next;
      log.info({ changed }, 'configuration read again');
      if (atRestart.length > 0)
        log.warn({ keys: atRestart }, 'these keys have new values, which wait for the next start');
    } catch (error) {
      const about = error instanceof ConfigError ? { problems: error.problems } : { err: error };
      log.error(about, 'the configuration was read again and is not usable: nothing has changed');
    }
  };
}

type Manager = ServiceManager | undefined;
type OnReload = (take: (config: Config) => void) => void;

/** The usual way: one process that is the gateway. */
async function serve(config: Config, log: Logger, onReload: OnReload, manager: Manager): Promise<void> {
  const gateway = createGateway(config, {
    log,
    build: build(),
    openapi: () => inSlices(servedOpenapi(config)),
    consoleFolder,
  });
  let told: Promise<void> | undefined;
  const stop = stopper(log, gateway, async () => told);
  onSignals((signal, isFirst) => {
    // a second signal means that the wait is too long for whoever sends it
    if (!isFirst) process.exit(EXIT_AT_ONCE);
    told = manager?.stopping();
    stop({ signal });
  });
  onReload((changed) => gateway.reload(changed));
  const { port, instances } = await gateway.start();
  log.info({ host: config.http.host, port, instances }, 'listening');
  manager?.ready();
}

/** The process that owns the ports while others serve them. */
async function superviseWorkers(
  config: Config,
  log: Logger,
  onReload: OnReload,
  manager: Manager,
): Promise<void> {
  let told: Promise<void> | undefined;
  const primary = new Primary(config, log, {
    exit: (code) => void Promise.resolve(told).then(() => exit(code)),
    listening: () => manager?.ready(),
    complain: (text) => process.stderr.write(`${text}\n`),
  });
  onSignals((signal, isFirst) => {
    if (!isFirst) {
      primary.killAll();
      process.exit(EXIT_AT_ONCE);
    }
    log.info({ signal }, 'stopping');
    told = manager?.stopping();
    primary.stop();
  });
  onReload((changed) => primary.reload(changed));
  await primary.start();
}

/** One of several processes; the primary one says when to begin and to stop. */
async function work(link: WorkerLink): Promise<void> {
  // a terminal sends them to all processes; the primary one decides
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const { config, place } = await link.begin();
  const log = createLogger(config.log.level, output).child({ worker: link.number });
  const gatherMetrics = () => link.gather();
  const gateway = createGateway(config, {
    log,
    build: build(),
    openapi: () => inSlices(servedOpenapi(config)),
    gatherMetrics,
    gatherSteps: () => link.gatherSteps(),
    consoleFolder,
    worker: place,
  });
  const stop = stopper(log, gateway, async () => link.sendFinal(await gateway.counts()));
  process.on('SIGTERM', (signal) => stop({ signal }));
  link.take({
    stop: (lost) => stop({ lost }),
    metrics: () => gateway.metrics(),
    reload: (changed) => gateway.reload(changed),
    steps: () => gateway.steps(),
  });
  try {
    await link.listening(await gateway.start());
  } catch (error) {
    await link.failed(error);
    process.exit(1);
  }
}

/** Stops the gateway once, however often it is called, and ends the process: 0 when all went well. */
function stopper(log: Logger, gateway: Gateway, lastly = async (): Promise<void> => undefined) {
  process.on('unhandledRejection', (reason) => log.error({ err: reason }, 'a rejection that nobody handled'));
  let stopping = false;
  return (about: object): void => {
    if (stopping) return;
    stopping = true;
    log.info(about, 'stopping');
    void gateway.stop().then(async (errors) => {
      log.info({ errors: errors.length }, 'stopped');
      await lastly();
      await exit(errors.length === 0 ? 0 : 1);
    });
  };
}

function onSignals(act: (signal: NodeJS.Signals, isFirst: boolean) => void): void {
  let isFirst = true;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      act(signal, isFirst);
      isFirst = false;
    });
  }
}

/** @param complete as `loadConfig` */
function load(file: string | undefined, complete = true): LoadedConfig {
  return loadConfig(sourceOf(file), complete);
}

function sourceOf(file: string | undefined): ConfigSource {
  return { ...(file === undefined ? {} : { file }), environment: process.env };
}

/** @param note the file in which a start notes what it runs */
async function reset(note: string): Promise<void> {
  const left = await resetServices(
    JSON.parse(readFileSync(note, 'utf8')) as StartNote,
    createLogger('warn', output),
  );
  if (left.length > 0) process.stderr.write(`left as they are: ${left.join(', ')}\n`);
}

/** What of a configuration its operator should know, once for all processes. */
function announce({ config, warnings, unserved }: LoadedConfig, log: Logger): void {
  for (const warning of warnings) log.warn(warning);
  if (config.http.metricsToken === null && !metricsAreOpen(config.http))
    log.warn('http.metricsToken is not set, and others can reach http.host: /metrics is refused');
  for (const service of unserved) log.info(unservedText(service));
  for (const { service, section } of enabledServices(config)) {
    if (section.missing !== null)
      log.warn({ service: service.name, reason: section.missing }, 'its backend could not be started');
  }
}

async function main(): Promise<void> {
  // Node would open its inspector, in which whoever can connect runs what he likes
  process.on('SIGUSR1', () => undefined);
  process.on('exit', () => output.flush());
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { config: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  const file = values.config ?? (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
  const command = positionals[0] ?? 'run';
  if (values.help === true) process.stdout.write(USAGE);
  else if (command === 'run') await run(file);
  else if (command === 'openapi') process.stdout.write(defaultOpenapi());
  else if (command === 'services') process.stdout.write(cardsOfServices());
  else if (command === 'settings')
    process.stdout.write(positionals[1] === 'yaml' ? settingsYaml() : settingsTable());
  else if (command === 'tokens') process.stdout.write(tokenReport(load(file, false).config));
  else if (command === 'check') process.stdout.write(`${JSON.stringify(checkReport(load(file, false)))}\n`);
  else if (command === 'reset' && positionals[1] !== undefined) await reset(positionals[1]);
  else throw new Error(`unknown command ${command}\n${USAGE}`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigError ? EX_CONFIG : 1);
});
