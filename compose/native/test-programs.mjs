import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../processes/lock.mjs';
import { javaHomeOf } from './kafka.mjs';
import { fetchKafkaJars, kafkaJarsOf } from './programs/kafka-jars.mjs';
import { programInstaller, programsLock } from './programs/programs.mjs';
import { loaderOf } from './programs/relocate.mjs';

/** What the browser needs to know of its own tree: fonts, and a folder of libraries beside the common one. */
function browserVariables(p, chromium) {
  const { libraries } = loaderOf(chromium);
  const fonts = join(p.run, 'fonts.conf');
  const cache = join(p.run, 'fonts');
  writeFileSync(
    fonts,
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${chromium}/usr/share/fonts</dir><cachedir>${cache}</cachedir></fontconfig>\n`,
  );
  return {
    PORTICO_TEST_CHROMIUM: join(chromium, 'usr/lib/chromium/chromium-headless-shell'),
    PORTICO_TEST_CHROMIUM_LIBRARIES: join(libraries, 'pulseaudio'),
    PORTICO_TEST_CHROMIUM_FONTS: fonts,
  };
}

/**
 * Programs that tests start servers of their own with, however the backends run, as variables.
 * @param {import('../state/profile.mjs').Profile} p
 * @param {(name: string, line: string) => void} progress
 * @param {boolean} [withBrowser] 124 MB of packages, which most tests do without
 * @returns {Promise<Record<string, string>>}
 * @throws {Error} when one cannot be had
 */
export function testPrograms(p, progress, withBrowser = false) {
  const installer = programInstaller(p, (line) => progress('programs', line));
  return withLock(programsLock(p), async () => {
    const [newest, old, postgres, compose] = await Promise.all([
      installer.program('redis'),
      installer.program('redis-7.0'),
      installer.program('postgres-17'),
      installer.program('compose'),
      installer.program('java'),
      fetchKafkaJars(p, (line) => progress('programs', line)),
      installer.program('nss-wrapper'),
    ]);
    return {
      PORTICO_TEST_REDIS_NEWEST: join(newest, 'usr/bin/redis-server'),
      PORTICO_TEST_REDIS_SYSTEM: join(old, 'usr/bin/redis-server'),
      PORTICO_TEST_COMPOSE: join(compose, 'usr/libexec/docker/cli-plugins/docker-compose'),
      PORTICO_TEST_POSTGRES_17: join(postgres, 'usr/lib/postgresql/17/bin'),
      PORTICO_TEST_JAVA: join(javaHomeOf(p), 'bin'),
      PORTICO_TEST_KAFKA_JARS: kafkaJarsOf(p),
      ...(withBrowser ? browserVariables(p, await installer.program('chromium')) : {}),
    };
  });
}
