import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { fetchKafkaJars, kafkaJarsOf } from '../../compose/native/programs/kafka-jars.mjs';
import { runProgram } from '../../compose/processes/run-program.mjs';
import { root as checkout } from '../../compose/state/profile.mjs';
import { cache, rootFileSystem } from './engine.mjs';

/** Which stage of standins/Dockerfile stands in for an image. */
const stages = [
  [/^node:/, 'node'],
  [/^redis:/, 'redis'],
  [/^pgvector\//, 'postgres'],
  [/^apache\/kafka:/, 'kafka'],
  [/^rabbitmq:/, 'rabbitmq'],
];
const buildLimitMs = 900_000;

/** The images that compose.yaml and the Dockerfile begin with. */
export function namedImages() {
  const { services } = parse(readFileSync(join(checkout, 'compose/compose.yaml'), 'utf8'), { merge: true });
  const images = Object.values(services).flatMap(({ image, build }) => (build ? [] : [image]));
  const base = /^ARG NODE=(\S+)$/m.exec(readFileSync(join(checkout, 'compose/Dockerfile'), 'utf8'))?.[1];
  return [...images, base];
}

/** Brings a root file system into the engine as an image. */
async function importBase(env) {
  const root = await rootFileSystem('trixie');
  const pack = spawn('tar', ['-C', root, '--exclude=./var/cache/apt/archives/*.deb', '-c', '.'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const unpack = spawn('docker', ['import', '-', 'portico-test/trixie'], {
    env: { ...process.env, ...env },
    stdio: [pack.stdout, 'ignore', 'inherit'],
  });
  const code = await new Promise((resolve) => unpack.once('close', resolve));
  if (code !== 0) throw new Error(`docker import failed (${code})`);
}

/** Node and npm as the official image has them below /usr/local. */
async function packNode(folder, version) {
  const processor = process.arch === 'arm64' ? 'arm64' : 'x64';
  const packages = [`node-linux-${processor}@${version}`, 'npm@11'];
  await runProgram('npm', ['pack', '--silent', ...packages], { cwd: folder, timeoutMs: buildLimitMs });
  const unpack = `mkdir -p node/bin node/lib/node_modules
    tar -xzf node-linux-*.tgz package/bin/node package/LICENSE && mv package/bin/node node/bin/ && mv package/LICENSE node/
    rm -rf package && tar -xzf npm-*.tgz && mv package node/lib/node_modules/npm && rm ./*.tgz`;
  await runProgram('sh', ['-ec', unpack], { cwd: folder });
}

/** What standins/Dockerfile copies: Node, npm and Kafka's jars, made once for each version of them. */
async function context(images) {
  const node = images.find((image) => image.startsWith('node:'));
  const folder = join(cache, 'context');
  const mark = join(folder, 'images.json');
  if (!existsSync(mark) || readFileSync(mark, 'utf8') !== JSON.stringify(images)) {
    const fresh = `${folder}.new`;
    rmSync(fresh, { recursive: true, force: true });
    mkdirSync(fresh, { recursive: true });
    await packNode(fresh, /[\d.]+/.exec(node)[0]);
    await fetchKafkaJars({ programs: join(fresh, 'jars') }, () => undefined);
    renameSync(kafkaJarsOf({ programs: join(fresh, 'jars') }), join(fresh, 'kafka'));
    const authority = process.env.NODE_EXTRA_CA_CERTS;
    writeFileSync(join(fresh, 'authority.pem'), authority ? readFileSync(authority) : '');
    writeFileSync(join(fresh, 'images.json'), JSON.stringify(images));
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  }
  cpSync(fileURLToPath(new URL('standins', import.meta.url)), folder, { recursive: true });
  return folder;
}

/** Whether the engine has an image of this name. */
export async function hasImage(env, image) {
  return runProgram('docker', ['image', 'inspect', image], { env }).then(
    () => true,
    () => false,
  );
}

/**
 * Builds what stands in for the images that are not there.
 * @param {Record<string, string>} env of the engine's client
 * @param {(line: string) => void} say
 */
export async function standIn(env, say) {
  const images = namedImages();
  const there = await Promise.all(images.map((image) => hasImage(env, image)));
  const missing = images.filter((_, i) => !there[i]);
  if (missing.length === 0) return;
  if (!(await hasImage(env, 'portico-test/trixie'))) await importBase(env);
  const folder = await context(images);
  for (const image of missing) {
    const stage = stages.find(([pattern]) => pattern.test(image))?.[1];
    if (stage === undefined) throw new Error(`nothing stands in for ${image}`);
    const args = ['build', '--quiet', '--network', 'host', '--tag', image, '--target', stage, folder];
    await runProgram('docker', args, { env, timeoutMs: buildLimitMs });
    say(`stand-in for ${image}`);
  }
}
