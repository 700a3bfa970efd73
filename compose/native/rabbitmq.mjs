import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../state/profile.mjs';
import { writePrivateFile } from '../state/secrets.mjs';
import { WrongPassword } from './backend.mjs';
import { exchange } from './exchange.mjs';
import { demandFolderName } from './folder-names.mjs';
import { programOf } from './programs/programs.mjs';
import { giveData, giveTo } from './unprivileged.mjs';

/** Another major series cannot read the data: its folder is its own. */
const dataOf = (p) => join(p.data, `rabbitmq-${majorOf(programOf(p, 'rabbitmq').version)}`);
const majorOf = (version) => version.split('.')[0];

/** Folders of series that came before: RabbitMQ 3 had one without a number. */
function olderData(p) {
  const own = Number(majorOf(programOf(p, 'rabbitmq').version));
  return readdirSync(p.data).filter((name) => {
    const [, series] = /^rabbitmq(?:-(\d+))?$/.exec(name) ?? [];
    return name === 'rabbitmq' || (series !== undefined && Number(series) < own);
  });
}

/** The only folder below `parent` whose name begins so. */
function folderOf(parent, begin) {
  const name = readdirSync(parent).find((one) => one.startsWith(begin));
  if (name === undefined) throw new Error(`${parent} holds no ${begin}`);
  return join(parent, name);
}

/**
 * RabbitMQ's own arguments (its `rabbitmq-server`, `rabbitmq-env` and `rabbitmq-defaults` of 4.3), given to Erlang without a shell in
 * between: those scripts do not stand a blank or a quote in the folder's name.
 */
const erlangArgs = [
  ...['-noinput', '-s', 'rabbit', 'boot', '-boot', 'start_sasl'],
  // names of files are UTF-8, whatever the user's locale
  ...['+fnu', '+pc', 'unicode', '+W', 'w'],
  ...['+MBas', 'ageffcbf', '+MHas', 'ageffcbf', '+MBlmbcs', '512', '+MHlmbcs', '512', '+MMmcs', '30'],
  ...['+P', '1048576', '+t', '5000000', '+stbt', 'db', '+zdbbl', '128000'],
  ...['+sbwt', 'none', '+sbwtdcpu', 'none', '+sbwtdio', 'none', '+B', 'i'],
  ...['-kernel', 'inet_dist_use_interface', '{127,0,0,1}'],
  ...['-syslog', 'logger', '[]', '-syslog', 'syslog_error_logger', 'false'],
  ...['-kernel', 'prevent_overlapping_partitions', 'false'],
];

/** RabbitMQ's stored form of a password: base64 of a 4-byte salt and SHA-256(salt + password). */
function passwordHash(password) {
  const salt = randomBytes(4);
  const digest = createHash('sha256').update(salt).update(password).digest();
  return Buffer.concat([salt, digest]).toString('base64');
}

/** Loaded at every start, so a password that was made anew is taken over; with it no user `guest` is created. */
function definitions(password) {
  const user = 'portico';
  return {
    users: [
      {
        name: user,
        password_hash: passwordHash(password),
        hashing_algorithm: 'rabbit_password_hashing_sha256',
        tags: 'administrator',
      },
    ],
    vhosts: [{ name: '/' }],
    permissions: [{ user, vhost: '/', configure: '.*', write: '.*', read: '.*' }],
  };
}

/** The files that RabbitMQ reads at start, all of them under the profile's folder. */
function writeConfiguration({ p, secrets }, home) {
  const own = [
    `listeners.tcp.1 = 127.0.0.1:${p.ports.rabbitmq}`,
    'management.tcp.ip = 127.0.0.1',
    `management.tcp.port = ${p.ports.rabbitmqManagement}`,
    // as seen from the node's own folder: the name of a folder above may hold a #, which begins a comment
    'load_definitions = definitions.json',
  ];
  const common = readFileSync(join(root, 'config/rabbitmq.conf'), 'utf8');
  writePrivateFile(join(home, 'rabbitmq.conf'), `${common}${own.join('\n')}\n`);
  writePrivateFile(
    join(home, 'definitions.json'),
    JSON.stringify(definitions(secrets.PORTICO_RABBITMQ_PASSWORD)),
  );
  writePrivateFile(join(home, 'enabled_plugins'), '[rabbitmq_management].\n');
  writePrivateFile(join(home, '.erlang.cookie'), secrets.PORTICO_RABBITMQ_COOKIE);
}

/** A short string of AMQP: one byte of length, then the text. */
const shortString = (text) => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);

/** A long string, or a table when empty: four bytes of length, then the content. */
function longString(text) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([length, Buffer.from(text)]);
}

/** Asks for a word on a login that is refused, in place of a connection that breaks. */
const clientProperties = Buffer.concat([
  shortString('capabilities'),
  Buffer.from('F'),
  longString(Buffer.concat([shortString('authentication_failure_close'), Buffer.from('t\x01')])),
]);

/** A method frame on channel 0 (AMQP 0-9-1, section 2.3.5). */
function methodFrame(classId, methodId, ...parts) {
  const body = Buffer.concat([Buffer.from([0, classId, 0, methodId]), ...parts]);
  const head = Buffer.from([1, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 3);
  return Buffer.concat([head, body, Buffer.from([0xce])]);
}

/** Waits for one method frame of the connection class. */
async function expectMethod(read, methodId) {
  const head = await read(7);
  if (head[0] !== 1) throw new Error('RabbitMQ does not speak AMQP 0-9-1');
  const body = await read(head.readUInt32BE(3) + 1);
  const [classId, method] = [body.readUInt16BE(0), body.readUInt16BE(2)];
  // connection.close, and the code access-refused
  if (classId === 10 && method === 50 && body.readUInt16BE(4) === 403) throw new WrongPassword();
  if (classId !== 10 || method !== methodId)
    throw new Error(`RabbitMQ sends method ${method} in its handshake`);
  return body.subarray(4);
}

/** @type {import('./backend.mjs').Backend} */
export const rabbitmq = {
  name: 'rabbitmq',
  ports: ['rabbitmq', 'rabbitmqManagement', 'rabbitmqDistribution', 'rabbitmqEpmd'],
  graceMs: 20_000,
  stopSignal: 'SIGTERM',

  async install(installer) {
    demandFolderName('rabbitmq', installer.p.dir);
    await installer.program('rabbitmq');
  },

  async processes(context) {
    const { p, runner } = context;
    const { tree } = programOf(p, 'rabbitmq');
    const home = join(p.run, 'rabbitmq');
    const data = dataOf(p);
    for (const dir of [home, data]) mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeConfiguration(context, home);
    giveTo(runner, home);
    giveData(runner, data);
    const erlang = join(tree, 'usr/lib/erlang');
    const programs = join(folderOf(erlang, 'erts-'), 'bin');
    const server = folderOf(join(tree, 'usr/lib/rabbitmq/lib'), 'rabbitmq_server-');
    const epmd = { ERL_EPMD_PORT: String(p.ports.rabbitmqEpmd), ERL_EPMD_ADDRESS: '127.0.0.1' };
    const env = {
      ...epmd,
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
      RABBITMQ_NODENAME: `portico-${p.name}@localhost`,
      RABBITMQ_MNESIA_BASE: data,
      RABBITMQ_LOG_BASE: p.logs,
      RABBITMQ_CONFIG_FILE: join(home, 'rabbitmq.conf'),
      RABBITMQ_PLUGINS_DIR: join(server, 'plugins'),
      // The system's own settings in /etc/rabbitmq are for the system's own node.
      RABBITMQ_CONF_ENV_FILE: join(home, 'no-rabbitmq-env.conf'),
      RABBITMQ_ADVANCED_CONFIG_FILE: join(home, 'no-advanced.config'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(home, 'enabled_plugins'),
      RABBITMQ_DIST_PORT: String(p.ports.rabbitmqDistribution),
    };
    return [
      // RabbitMQ starts the machine's shared port mapper otherwise, which would stay behind and listen on all addresses.
      {
        name: 'rabbitmq-epmd',
        file: join(programs, 'epmd'),
        args: ['-port', epmd.ERL_EPMD_PORT, '-address', '127.0.0.1'],
        env: epmd,
        cwd: home,
      },
      { name: 'rabbitmq', file: join(programs, 'erlexec'), args: erlangArgs, env, cwd: home },
    ];
  },

  async ready({ p, secrets }) {
    await exchange(p.ports.rabbitmq, async (send, read) => {
      send(Buffer.from('AMQP\0\0\x09\x01', 'latin1'));
      await expectMethod(read, 10);
      const login = `\0portico\0${secrets.PORTICO_RABBITMQ_PASSWORD}`;
      send(
        methodFrame(
          10,
          11,
          longString(clientProperties),
          shortString('PLAIN'),
          longString(login),
          shortString('en_US'),
        ),
      );
      const tune = await expectMethod(read, 30);
      send(methodFrame(10, 31, tune.subarray(0, 8)));
      send(methodFrame(10, 40, shortString('/'), shortString(''), Buffer.from([0])));
      await expectMethod(read, 41);
      send(methodFrame(10, 50, Buffer.from([0, 200]), shortString('ready'), Buffer.alloc(4)));
      await expectMethod(read, 51);
    });
  },

  notes: ({ p }) =>
    olderData(p).map(
      (name) =>
        `${join(p.data, name)} is of an older RabbitMQ and is not read; messages that were accepted come back from Postgres`,
    ),

  urls: ({ p, secrets }) => ({
    PORTICO_RABBITMQ_URL: `amqp://portico:${secrets.PORTICO_RABBITMQ_PASSWORD}@127.0.0.1:${p.ports.rabbitmq}`,
  }),
};
