import { join } from 'node:path';
import { withLock } from '../processes/lock.mjs';
import { stateDir } from '../state/profile.mjs';
import { javaHomeOf } from './kafka.mjs';
import { fetchKafkaJars, kafkaJarsOf } from './programs/kafka-jars.mjs';
import { programInstaller } from './programs/programs.mjs';

/**
 * Programs that tests start servers of their own with, however the backends run, as variables.
 * @param {import('../state/profile.mjs').Profile} p
 * @param {(name: string, line: string) => void} progress
 * @returns {Promise<Record<string, string>>}
 * @throws {Error} when one cannot be had
 */
export function testPrograms(p, progress) {
  const installer = programInstaller(p, (line) => progress('programs', line));
  return withLock(join(stateDir, 'programs.lock'), async () => {
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
    };
  });
}
