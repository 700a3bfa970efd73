import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { HANGS_MS } from '../eventually.js';
import { freePort } from '../free-port.js';
import { startRelay } from '../tcp-relay.js';

const run = promisify(execFile);

export interface SecureKafka {
  /** host:port of the listener with TLS and SASL. */
  readonly address: string;
  /** The same behind a network with round trips of `DISTANT_MS`. */
  readonly distant: string;
  /** PEM file of the authority that its certificate is from. */
  readonly ca: string;
  readonly username: string;
  readonly password: string;
  stop(): Promise<void>;
}

/** A round trip to `distant`, in ms. */
export const DISTANT_MS = 400;

/** A real Kafka of the test's own that lets in by TLS with SASL only (PLAIN, SCRAM-SHA-256 and -512, OAUTHBEARER). */
export async function startSecureKafka(): Promise<SecureKafka> {
  const folder = await mkdtemp(join(tmpdir(), 'portico-test-kafka-'));
  const [username, password, storePassword] = ['gateway', secret(), secret()] as const;
  const [client, far, inner, controller] = await Promise.all([
    freePort(),
    freePort(),
    freePort(),
    freePort(),
  ]);
  const relay = await startRelay(far, DISTANT_MS / 2);
  const store = join(folder, 'store.p12');
  const ca = join(folder, 'ca.pem');
  await makeCertificate(store, storePassword, ca);
  const jaas = (module: string, rest: string) =>
    `org.apache.kafka.common.security.${module} required ${rest};`;
  const withTlsAndSasl = (listener: string) => ({
    [`listener.name.${listener}.sasl.enabled.mechanisms`]: 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    [`listener.name.${listener}.plain.sasl.jaas.config`]: jaas(
      'plain.PlainLoginModule',
      `user_${username}="${password}"`,
    ),
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`]: jaas('scram.ScramLoginModule', ''),
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`]: jaas('scram.ScramLoginModule', ''),
    // takes tokens that nobody signed (Kafka's own for development)
    [`listener.name.${listener}.oauthbearer.sasl.jaas.config`]: jaas(
      'oauthbearer.OAuthBearerLoginModule',
      'unsecuredLoginStringClaim_sub="broker"',
    ),
    [`listener.name.${listener}.ssl.keystore.location`]: store,
    [`listener.name.${listener}.ssl.keystore.password`]: storePassword,
    [`listener.name.${listener}.ssl.key.password`]: storePassword,
  });
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    listeners: `CLIENT://127.0.0.1:${client},FAR://127.0.0.1:${far},INNER://127.0.0.1:${inner},CONTROLLER://127.0.0.1:${controller}`,
    'advertised.listeners': `CLIENT://127.0.0.1:${client},FAR://127.0.0.1:${relay.port},INNER://127.0.0.1:${inner}`,
    'controller.quorum.voters': `1@127.0.0.1:${controller}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'INNER',
    'listener.security.protocol.map': 'CLIENT:SASL_SSL,FAR:SASL_SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT',
    ...withTlsAndSasl('client'),
    ...withTlsAndSasl('far'),
    'log.dirs': join(folder, 'data'),
    'auto.create.topics.enable': false,
    'group.initial.rebalance.delay.ms': 0,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 1,
  };
  const file = join(folder, 'server.properties');
  const lines = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(file, lines.join(''), { mode: 0o600 });
  const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
    '--add-scram',
    `${mechanism}=[name=${username},password=${password}]`,
  ]);
  await run(javaProgram('java'), [
    ...javaArgs,
    'kafka.tools.StorageTool',
    'format',
    '-t',
    clusterId(),
    '-c',
    file,
    ...scram,
  ]);
  const child = spawn(javaProgram('java'), [...javaArgs, 'kafka.Kafka', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    await started(child);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    address: `127.0.0.1:${client}`,
    distant: `127.0.0.1:${relay.port}`,
    ca,
    username,
    password,
    stop: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await relay.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A program of the Java that the test run has. */
const javaProgram = (name: string) => join(process.env.PORTICO_TEST_JAVA ?? '', name);

const javaArgs = [
  '-Xms96m',
  '-Xmx256m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dlog4j2.configurationFile=compose/native/kafka-log4j2.properties',
  '-cp',
  `${process.env.PORTICO_TEST_KAFKA_JARS}/*`,
];

async function makeCertificate(store: string, password: string, pem: string): Promise<void> {
  const common = ['-keystore', store, '-storepass', password, '-alias', 'kafka'];
  await run(javaProgram('keytool'), [
    ...['-genkeypair', '-keyalg', 'EC', '-groupname', 'secp256r1', '-validity', '2', '-dname', 'CN=kafka'],
    ...['-storetype', 'PKCS12', '-ext', 'san=ip:127.0.0.1,dns:localhost', ...common],
  ]);
  const { stdout } = await run(javaProgram('keytool'), ['-exportcert', '-rfc', ...common]);
  await writeFile(pem, stdout);
}

async function started(child: ChildProcess): Promise<void> {
  const lines: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const ready = new Promise<void>((resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no Kafka within ${HANGS_MS} ms:\n${lines.join('\n')}`)),
      HANGS_MS,
    );
    child.once('exit', (code) => reject(new Error(`Kafka ended with ${code}:\n${lines.join('\n')}`)));
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        if (line.includes('Kafka Server started')) resolve();
      });
    }
  });
  await ready.finally(() => clearTimeout(timer));
}

function secret(): string {
  return randomBytes(18).toString('hex');
}

/** A UUID in base64url; Kafka's tools refuse one that looks like an option. */
function clusterId(): string {
  return randomBytes(16).toString('base64url').replace(/^-/, 'a');
}
