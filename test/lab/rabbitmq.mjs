import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import amqp from 'amqplib';
import { programOf } from '../../compose/native/programs/programs.mjs';
import { commandAs, giveData } from '../../compose/native/unprivileged.mjs';
import { until } from './postgres.mjs';

const [USER, PASSWORD, COOKIE] = ['portico', 'laboratory', 'LABORATORYLABORATORY'];

/** Three nodes, of which each knows the others by their addresses. */
export class RabbitmqCluster {
  constructor({ p, runner, folder, machines }) {
    Object.assign(this, { p, runner, folder, machines });
  }

  get url() {
    return `amqp://${USER}:${PASSWORD}@${this.machines.map(({ address }) => `${address}:5672`).join(',')}`;
  }

  nodeOf = ({ address }) => `rabbit@${address}`;

  async start() {
    await Promise.all(this.machines.map((machine) => this.run(machine)));
  }

  configuration() {
    const nodes = this.machines.map(
      (machine, i) => `cluster_formation.classic_config.nodes.${i + 1} = ${this.nodeOf(machine)}`,
    );
    return [
      'listeners.tcp.default = 5672',
      `default_user = ${USER}`,
      `default_pass = ${PASSWORD}`,
      'cluster_formation.peer_discovery_backend = classic_config',
      ...nodes,
      'log.console = true',
      'log.console.level = warning',
      'log.file = false',
      'raft.wal_max_size_bytes = 33554432',
      '',
    ].join('\n');
  }

  async run(machine) {
    const { tree } = programOf(this.p, 'rabbitmq');
    const home = join(this.folder, machine.name);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const erlang = movedErlang(join(tree, 'usr/lib/erlang'), join(this.folder, 'erlang'));
    const programs = join(only(erlang, 'erts-'), 'bin');
    const server = only(join(tree, 'usr/lib/rabbitmq/lib'), 'rabbitmq_server-');
    writeFileSync(join(home, 'rabbitmq.conf'), this.configuration());
    writeFileSync(join(home, 'enabled_plugins'), '[].\n');
    writeFileSync(join(home, '.erlang.cookie'), COOKIE, { mode: 0o400, flag: 'w' });
    giveData(this.runner, home);
    const env = {
      HOME: home,
      LC_ALL: 'C.UTF-8',
      ROOTDIR: erlang,
      BINDIR: programs,
      EMU: 'beam',
      PROGNAME: 'erl',
      ERL_LIBS: join(server, 'plugins'),
      ERL_MAX_ETS_TABLES: '50000',
      ERL_MAX_PORTS: '65536',
      ERL_CRASH_DUMP_SECONDS: '0',
      RABBITMQ_HOME: server,
      RABBITMQ_NODENAME: this.nodeOf(machine),
      RABBITMQ_USE_LONGNAME: 'true',
      RABBITMQ_MNESIA_BASE: join(home, 'data'),
      RABBITMQ_LOG_BASE: home,
      RABBITMQ_CONFIG_FILE: join(home, 'rabbitmq.conf'),
      RABBITMQ_PLUGINS_DIR: join(server, 'plugins'),
      RABBITMQ_CONF_ENV_FILE: join(home, 'none.conf'),
      RABBITMQ_ADVANCED_CONFIG_FILE: join(home, 'none.config'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(home, 'enabled_plugins'),
    };
    const start = (file, args) => {
      const command = commandAs(this.runner, join(programs, file), args);
      const child = machine.spawn(command.file, command.args, {
        cwd: home,
        env: { PATH: process.env.PATH, ...env, ...command.env },
      });
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) =>
          writeFileSync(join(this.folder, `${machine.name}.log`), chunk, { flag: 'a' }),
        );
    };
    start('epmd', []);
    start('erlexec', [
      ...['-noinput', '-s', 'rabbit', 'boot', '-boot', 'start_sasl', '+fnu', '+W', 'w'],
      ...['+P', '1048576', '+t', '5000000', '+stbt', 'db', '+zdbbl', '128000'],
      ...['+sbwt', 'none', '+sbwtdcpu', 'none', '+sbwtdio', 'none'],
      ...['-kernel', 'net_ticktime', '10'],
      ...['-syslog', 'logger', '[]', '-syslog', 'syslog_error_logger', 'false'],
      ...['-kernel', 'prevent_overlapping_partitions', 'false'],
    ]);
    await until(async () => {
      const connection = await amqp.connect(`amqp://${USER}:${PASSWORD}@${machine.address}:5672`, {
        timeout: 2_000,
      });
      await connection.close();
    }, 240_000);
  }
}

const only = (parent, begin) =>
  join(
    parent,
    readdirSync(parent).find((name) => name.startsWith(begin)),
  );

/**
 * Nodes that look for each other start a second Erlang by its script `erl`, which has the place where Debian installs it in
 * its text: the same tree, with a script that knows its own place.
 */
function movedErlang(from, to) {
  if (existsSync(to)) return to;
  const runtime = only(from, 'erts-');
  const name = runtime.slice(from.length + 1);
  const programs = join(to, name, 'bin');
  mkdirSync(programs, { recursive: true });
  const link = (parent, folder, except) => {
    for (const entry of readdirSync(parent))
      if (entry !== except) symlinkSync(join(parent, entry), join(folder, entry));
  };
  link(from, to, name);
  link(runtime, join(to, name), 'bin');
  link(join(runtime, 'bin'), programs, 'erl');
  const script = `#!/bin/sh\nROOTDIR=${to} BINDIR=${programs} EMU=beam PROGNAME=erl exec ${programs}/erlexec "$@"\n`;
  writeFileSync(join(programs, 'erl'), script);
  chmodSync(join(programs, 'erl'), 0o755);
  return to;
}
