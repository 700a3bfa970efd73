import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { testPrograms } from '../../../compose/native/test-programs.mjs';
import { makeFolders, profile } from '../../../compose/state/profile.mjs';
import { endWithThisProcess } from '../server-process.mjs';

const run = promisify(execFile);
const START_MS = 120_000;

/** Arguments of Java before those of the program. @param {string} jars what the class path holds */
const javaArgs = (jars) => [
  '-Xms96m',
  '-Xmx384m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dlog4j2.configurationFile=compose/native/kafka-log4j2.properties',
  '-cp',
  jars,
];

/**
 * Brokers of a cluster of their own, each a controller as well, that let in by TLS with SASL (PLAIN). They lead
 * partitions again soon after they have come back.
 * @param {number} count
 */
export async function startKafkaCluster(count) {
  const p = profile('test');
  makeFolders(p);
  const programs = await testPrograms(p, (_, line) => console.log(line));
  const [java, jars] = [programs.PORTICO_TEST_JAVA, `${programs.PORTICO_TEST_KAFKA_JARS}/*`];
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-kafka-'));
  const access = { ca: join(folder, 'ca.pem'), username: 'bench', password: randomBytes(18).toString('hex') };
  const store = { file: join(folder, 'store.p12'), password: randomBytes(18).toString('hex') };
  await makeCertificate(join(java, 'keytool'), store, access.ca);
  const nodes = await Promise.all(
    Array.from({ length: count }, async (_, i) => ({ id: i + 1, ...(await ports()) })),
  );
  const cluster = randomBytes(16).toString('base64url').replace(/^-/, 'a');
  const running = new Map();
  const begin = async (node) => {
    const file = join(folder, `${node.id}.properties`);
    const child = spawn(join(java, 'java'), [...javaArgs(jars), 'kafka.Kafka', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    endWithThisProcess(child);
    running.set(node.id, child);
    await untilLine(child, 'Kafka Server started');
  };
  await Promise.all(
    nodes.map(async (node) => {
      const properties = propertiesOf(node, nodes, { folder, store, access });
      const file = join(folder, `${node.id}.properties`);
      await writeFile(file, lines(properties), { mode: 0o600 });
      const format = ['kafka.tools.StorageTool', 'format', '-t', cluster, '-c', file];
      await run(join(java, 'java'), [...javaArgs(jars), ...format]);
    }),
  );
  await Promise.all(nodes.map(begin));
  const kill = async (id) => {
    const child = running.get(id);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    running.delete(id);
  };
  return {
    addresses: nodes.map(({ client }) => `127.0.0.1:${client}`),
    ...access,
    kill,
    restart: (id) => begin(nodes.find((node) => node.id === id)),
    /** A client of Java's. @param {string} tools path of Kafka's jar of tools */
    spawnTool: async (tools, program, args) => {
      const config = join(folder, 'client.properties');
      await writeFile(config, lines(clientProperties(access)), { mode: 0o600 });
      const all = [...javaArgs(`${tools}:${jars}`), program, ...args, '--command-config', config];
      const child = spawn(join(java, 'java'), all, { stdio: ['ignore', 'pipe', 'inherit'] });
      endWithThisProcess(child);
      return child;
    },
    stop: async () => {
      await Promise.all([...running.keys()].map(kill));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function propertiesOf(node, nodes, { folder, store, access }) {
  const jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required';
  return {
    'process.roles': 'broker,controller',
    'node.id': node.id,
    listeners: `CLIENT://127.0.0.1:${node.client},INNER://127.0.0.1:${node.inner},CONTROLLER://127.0.0.1:${node.controller}`,
    'advertised.listeners': `CLIENT://127.0.0.1:${node.client},INNER://127.0.0.1:${node.inner}`,
    'controller.quorum.voters': nodes.map(({ id, controller }) => `${id}@127.0.0.1:${controller}`).join(','),
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'INNER',
    'listener.security.protocol.map': 'CLIENT:SASL_SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'listener.name.client.sasl.enabled.mechanisms': 'PLAIN',
    'listener.name.client.plain.sasl.jaas.config': `${jaas} user_${access.username}="${access.password}";`,
    'listener.name.client.ssl.keystore.location': store.file,
    'listener.name.client.ssl.keystore.password': store.password,
    'listener.name.client.ssl.key.password': store.password,
    'log.dirs': join(folder, `data-${node.id}`),
    'auto.create.topics.enable': false,
    'group.initial.rebalance.delay.ms': 0,
    'default.replication.factor': nodes.length,
    'min.insync.replicas': 2,
    'offsets.topic.replication.factor': nodes.length,
    'offsets.topic.num.partitions': 6,
    'leader.imbalance.check.interval.seconds': 5,
    'leader.imbalance.per.broker.percentage': 0,
  };
}

function clientProperties({ ca, username, password }) {
  return {
    'security.protocol': 'SASL_SSL',
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': ca,
    'ssl.endpoint.identification.algorithm': '',
    'sasl.mechanism': 'PLAIN',
    'sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule required username="${username}" password="${password}";`,
  };
}

const lines = (properties) =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

async function makeCertificate(keytool, { file, password }, pem) {
  const common = ['-keystore', file, '-storepass', password, '-alias', 'kafka'];
  await run(keytool, [
    ...['-genkeypair', '-keyalg', 'EC', '-groupname', 'secp256r1', '-validity', '2', '-dname', 'CN=kafka'],
    ...['-storetype', 'PKCS12', '-ext', 'san=ip:127.0.0.1,dns:localhost', ...common],
  ]);
  const { stdout } = await run(keytool, ['-exportcert', '-rfc', ...common]);
  await writeFile(pem, stdout);
}

async function untilLine(child, text) {
  const seen = [];
  await new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`Kafka ${why}:\n${seen.slice(-20).join('\n')}`));
    const timer = setTimeout(() => fail(`did not start within ${START_MS} ms`), START_MS);
    child.once('exit', (code) => fail(`ended with ${code}`));
    createInterface({ input: child.stdout }).on('line', (line) => {
      seen.push(line);
      if (!line.includes(text)) return;
      clearTimeout(timer);
      resolve();
    });
  });
}

async function ports() {
  const [client, inner, controller] = await Promise.all([freePort(), freePort(), freePort()]);
  return { client, inner, controller };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
