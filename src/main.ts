#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkReport } from './check-report.js';
import { type Config, ConfigError, loadConfig } from './config.js';
import { createGateway } from './gateway.js';
import { openapiDocument } from './http/openapi.js';
import { createLogger } from './lib/logger.js';
import { describeServices } from './services/describe.js';
import { settingsTable } from './settings-table.js';
import { settingsYaml } from './settings-yaml.js';
import { tokenReport } from './token-report.js';

/** sysexits.h: a configuration error. */
const EX_CONFIG = 78;

const USAGE = `portico [run] [--config FILE]   run the gateway (default)
portico check [--config FILE]   check the configuration; print addresses and backends as JSON
portico openapi                 print the OpenAPI document
portico settings [yaml]         print every configuration key, as a table or as a file
portico tokens [--config FILE]  print the tokens of every database and index, as JSON
`;

const DEFAULT_FILE = fileURLToPath(new URL('../config/portico.yaml', import.meta.url));

function packageVersion(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

function openapi(): string {
  return `${JSON.stringify(openapiDocument(describeServices(), packageVersion()), null, 2)}\n`;
}

async function run(file: string | undefined): Promise<void> {
  const { config, warnings } = loadConfig({
    ...(file === undefined ? {} : { file }),
    environment: process.env,
  });
  const log = createLogger(config.log.level);
  for (const warning of warnings) log.warn(warning);
  const gateway = createGateway(config, { log, openapi: openapi() });

  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    // a second signal means that the wait is too long for whoever sends it
    if (stopping) process.exit(130);
    stopping = true;
    log.info({ signal }, 'stopping');
    void gateway.stop().then((errors) => {
      log.info({ errors: errors.length }, 'stopped');
      process.exit(errors.length === 0 ? 0 : 1);
    });
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('unhandledRejection', (reason) => log.error({ err: reason }, 'a rejection that nobody handled'));
  await gateway.start();
}

/** A configuration that the start scripts may still complete. */
function incomplete(file: string | undefined): Config {
  return loadConfig({ ...(file === undefined ? {} : { file }), environment: process.env }, false).config;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { config: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  const file = values.config ?? (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
  const command = positionals[0] ?? 'run';
  if (values.help === true) process.stdout.write(USAGE);
  else if (command === 'run') await run(file);
  else if (command === 'openapi') process.stdout.write(openapi());
  else if (command === 'settings')
    process.stdout.write(positionals[1] === 'yaml' ? settingsYaml() : settingsTable());
  else if (command === 'tokens') process.stdout.write(tokenReport(incomplete(file)));
  else if (command === 'check') process.stdout.write(`${JSON.stringify(checkReport(incomplete(file)))}\n`);
  else throw new Error(`unknown command ${command}\n${USAGE}`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigError ? EX_CONFIG : 1);
});
