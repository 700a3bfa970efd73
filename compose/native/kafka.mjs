import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runProgram } from '../processes/run-program.mjs';
import { root } from '../state/profile.mjs';
import { writePrivateFile } from '../state/secrets.mjs';
import { setupEnvironment } from './backend.mjs';
import { exchange } from './exchange.mjs';
import { demandFolderName } from './folder-names.mjs';
import { fetchKafkaJars, kafkaJarsOf } from './programs/kafka-jars.mjs';
import { programOf, withWayOut } from './programs/programs.mjs';
import { commandAs, giveData, giveTo } from './unprivileged.mjs';

const here = join(root, 'compose/native');

/** @param {import('../state/profile.mjs').Profile} p @returns {string} the home of Java's programs */
export function javaHomeOf(p) {
  const machines = join(programOf(p, 'java').tree, 'usr/lib/jvm');
  const home = readdirSync(machines).find((name) => existsSync(join(machines, name, 'bin/java')));
  if (home === undefined) throw new Error(`${machines} holds no Java`);
  return join(machines, home);
}

/** Log4j takes a list of names with commas between them. */
const logSettings = pathToFileURL(join(here, 'kafka-log4j2.properties')).href.replaceAll(',', '%2C');

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
    `-Dlog4j2.configurationFile=${logSettings}`,
    '-cp',
    join(kafkaJarsOf(p), '*'),
    ...rest,
  ];
}

/**
 * Java keeps the classes that the broker loaded in a file, made at a polite end and again when a program changed: the
 * next start took 1.9 s of CPU instead of 3.4.
 */
function classArchive(p, runner) {
  const folder = join(p.run, 'kafka-classes');
  mkdirSync(folder, { recursive: true });
  giveTo(runner, folder);
  return ['-XX:+AutoCreateSharedArchive', `-XX:SharedArchiveFile=${join(folder, 'classes.jsa')}`];
}

/** Java reads a file of properties as Latin-1: whatever is beyond ASCII has to be escaped. */
const propertyValue = (text) =>
  text.replace(/[^ -~]|\\/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

function writeConfiguration(p, dataDir) {
  const own = [
    `listeners=PLAINTEXT://127.0.0.1:${p.ports.kafka},CONTROLLER://127.0.0.1:${p.ports.kafkaController}`,
    `advertised.listeners=PLAINTEXT://127.0.0.1:${p.ports.kafka}`,
    `controller.quorum.voters=1@127.0.0.1:${p.ports.kafkaController}`,
    `log.dirs=${propertyValue(dataDir)}`,
  ];
  const file = join(p.run, 'kafka.properties');
  writePrivateFile(file, `${readFileSync(join(root, 'config/kafka.properties'), 'utf8')}${own.join('\n')}\n`);
  return file;
}

/** A cluster id is a UUID in base64url; Kafka's own tools refuse one that looks like an option. */
function clusterId() {
  for (;;) {
    const id = randomBytes(16).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}

/**
 * Formats the data folder once. A mark is set afterwards: a folder that was cut off half-way holds no data yet. One that
 * a broker has run in does, with or without the mark that lies beside it.
 */
async function ensureFormatted({ p, runner }, conf, dataDir) {
  const mark = `${dataDir}.formatted`;
  const isMarked = existsSync(mark) && existsSync(join(dataDir, 'meta.properties'));
  if (isMarked || existsSync(join(dataDir, '__cluster_metadata-0'))) return;
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { recursive: true });
  giveTo(runner, dataDir);
  const options = javaArgs(p, 'kafka.tools.StorageTool', 'format', '-t', clusterId(), '-c', conf);
  const { file, args } = commandAs(runner, join(javaHomeOf(p), 'bin/java'), options);
  await runProgram(file, args, { cwd: dataDir, env: setupEnvironment(p, 'kafka') });
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
  ports: ['kafka', 'kafkaController'],
  graceMs: 25_000,
  stopSignal: 'SIGTERM',

  async install(installer) {
    demandFolderName('kafka', installer.p.dir);
    const { p, say } = installer;
    await Promise.all([installer.program('java'), fetchKafkaJars(p, say).catch(withWayOut(p))]);
  },

  async processes(context) {
    const { p, runner } = context;
    const dataDir = join(p.data, 'kafka');
    const conf = writeConfiguration(p, dataDir);
    giveTo(runner, conf);
    await ensureFormatted(context, conf, dataDir);
    giveData(runner, dataDir);
    const args = [...classArchive(p, runner), ...javaArgs(p, 'kafka.Kafka', conf)];
    return [{ name: 'kafka', file: join(javaHomeOf(p), 'bin/java'), args, cwd: dataDir }];
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
