import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { root } from '../profile.mjs';
import { runProgram } from '../run-program.mjs';
import { writePrivateFile } from '../secrets.mjs';
import { exchange } from './exchange.mjs';

const here = join(root, 'compose/native');
const pom = join(here, 'pom.xml');

/** The folder of jars, named after the pom's content: another version is another folder. */
function jarsOf(p) {
  const version = /<artifactId>kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(
    readFileSync(pom, 'utf8'),
  )?.[1];
  return join(p.programs, `kafka-${version}`);
}

/**
 * The bounds: a heap of 384 MB, the one-thread collector and only the quick compiler,
 * which brings a small broker up in half the time and leaves the cores to others.
 */
function javaArgs(p, ...rest) {
  return [
    '-Xms96m',
    '-Xmx384m',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-XX:MaxMetaspaceSize=128m',
    '-Djava.net.preferIPv4Stack=true',
    `-Dlog4j2.configurationFile=${join(here, 'kafka-log4j2.properties')}`,
    '-cp',
    join(jarsOf(p), '*'),
    ...rest,
  ];
}

function writeConfiguration(p, dataDir) {
  const own = [
    `listeners=PLAINTEXT://127.0.0.1:${p.ports.kafka},CONTROLLER://127.0.0.1:${p.ports.kafkaController}`,
    `advertised.listeners=PLAINTEXT://127.0.0.1:${p.ports.kafka}`,
    `controller.quorum.voters=1@127.0.0.1:${p.ports.kafkaController}`,
    `log.dirs=${dataDir}`,
  ];
  const file = join(p.run, 'kafka.properties');
  writePrivateFile(file, `${readFileSync(join(root, 'config/kafka.properties'), 'utf8')}${own.join('\n')}\n`);
  return file;
}

const copyGoal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

/** Lets Maven copy the pom's jars into a folder; it checks each download against the repository's checksum. */
async function maven(dir, progress) {
  let count = 0;
  const onLine = (line) => {
    if (!/Copying .*\.jar/.test(line)) return;
    count += 1;
    if (count % 10 === 0) progress(`${count} Kafka jars are there`);
  };
  const options = ['-B', '-ntp', '-Dstyle.color=never', '--strict-checksums'];
  const args = [...options, copyGoal, '-DincludeScope=runtime', `-DoutputDirectory=${dir}`];
  try {
    await runProgram('mvn', args, { cwd: dir, timeoutMs: 300_000, onLine });
  } catch (error) {
    // The first line says what went wrong, the last ones where Maven's manual is.
    const reason = /\[ERROR\] (.{1,300})/.exec(error.output ?? '')?.[1];
    throw reason === undefined ? error : new Error(`Kafka's jars cannot be had: ${reason}`);
  }
}

/** A cluster id is a UUID in base64url; Kafka's own tools refuse one that looks like an option. */
function clusterId() {
  for (;;) {
    const id = randomBytes(16).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}

/** Formats the data folder once. A mark is set afterwards: a folder that was cut off half-way holds no data yet. */
async function ensureFormatted(p, conf, dataDir) {
  const mark = `${dataDir}.formatted`;
  if (existsSync(mark)) return;
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { recursive: true });
  await runProgram('java', javaArgs(p, 'kafka.tools.StorageTool', 'format', '-t', clusterId(), '-c', conf));
  writeFileSync(mark, '');
}

/** Metadata request, version 4, for no topic: answered with the brokers that the controller has admitted. */
function metadataRequest() {
  const client = 'portico-ready';
  const request = Buffer.alloc(4 + 2 + 2 + 4 + 2 + client.length + 4 + 1);
  let at = request.writeInt32BE(request.length - 4);
  at = request.writeInt16BE(3, at);
  at = request.writeInt16BE(4, at);
  at = request.writeInt32BE(1, at);
  at = request.writeInt16BE(client.length, at);
  at += request.write(client, at);
  at = request.writeInt32BE(0, at);
  request.writeInt8(0, at);
  return request;
}

/** @type {import('./backend.mjs').Backend} */
export const kafka = {
  name: 'kafka',
  programs: { java: 'default-jre-headless' },
  installPrograms: { mvn: 'maven' },
  ports: ['kafka', 'kafkaController'],
  graceMs: 25_000,
  stopSignal: 'SIGTERM',

  installed: (p) => existsSync(jarsOf(p)),

  async install(p, progress) {
    const jars = jarsOf(p);
    const half = `${jars}.new`;
    rmSync(half, { recursive: true, force: true });
    mkdirSync(half, { recursive: true });
    copyFileSync(pom, join(half, 'pom.xml'));
    await maven(half, progress);
    renameSync(half, jars);
  },

  async processes({ p }) {
    const dataDir = join(p.data, 'kafka');
    const conf = writeConfiguration(p, dataDir);
    await ensureFormatted(p, conf, dataDir);
    return [{ name: 'kafka', file: 'java', args: javaArgs(p, 'kafka.Kafka', conf), cwd: dataDir }];
  },

  async ready({ p }) {
    await exchange(p.ports.kafka, async (send, read) => {
      send(metadataRequest());
      const reply = await read((await read(4)).readInt32BE());
      // Correlation id and throttle time come first, then the number of brokers.
      if (reply.readInt32BE(8) < 1) throw new Error('Kafka has not yet admitted its broker');
    });
  },

  urls: ({ p }) => ({ PORTICO_KAFKA_BROKERS: `127.0.0.1:${p.ports.kafka}` }),
};
