import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import { javaHomeOf } from '../../compose/native/kafka.mjs';
import { kafkaJarsOf } from '../../compose/native/programs/kafka-jars.mjs';
import { commandAs, giveData } from '../../compose/native/unprivileged.mjs';
import { root } from '../../compose/state/profile.mjs';
import { until } from './postgres.mjs';

/** Three brokers, each a controller as well; every record is on all of them, two must have it. */
export class KafkaCluster {
  constructor({ p, runner, folder, machines }) {
    Object.assign(this, { p, runner, folder, machines });
  }

  get brokers() {
    return this.machines.map(({ address }) => `${address}:9092`);
  }

  async start() {
    const cluster = randomBytes(16).toString('base64url').replace(/^-/, 'a');
    await Promise.all(
      this.machines.map(async (machine, i) => {
        this.configure(machine, i + 1);
        const { file, args, home, env } = this.java(machine, [
          'kafka.tools.StorageTool',
          ...['format', '-t', cluster, '-c', join(this.folder, machine.name, 'kafka.properties')],
        ]);
        await machine.run(file, args, { cwd: home, env });
      }),
    );
    for (const machine of this.machines) this.begin(machine);
    const admin = new kafkajs.Kafka({ brokers: this.brokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
    await until(async () => {
      await admin.connect();
      const { brokers } = await admin.describeCluster();
      if (brokers.length < this.machines.length) throw new Error(`${brokers.length} brokers`);
    });
    await admin.disconnect();
  }

  java({ name }, rest) {
    const home = join(this.folder, name);
    const { file, args, env } = commandAs(this.runner, join(javaHomeOf(this.p), 'bin/java'), [
      ...['-Xms96m', '-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
      `-Dlog4j2.configurationFile=${join(root, 'compose/native/kafka-log4j2.properties')}`,
      ...['-cp', join(kafkaJarsOf(this.p), '*'), ...rest],
    ]);
    return { file, args, home, env: { ...process.env, ...env } };
  }

  configure({ name, address }, id) {
    const home = join(this.folder, name);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const voters = this.machines.map((machine, i) => `${i + 1}@${machine.address}:9093`);
    const properties = {
      'process.roles': 'broker,controller',
      'node.id': id,
      listeners: `PLAINTEXT://${address}:9092,CONTROLLER://${address}:9093`,
      'advertised.listeners': `PLAINTEXT://${address}:9092`,
      'controller.quorum.voters': voters.join(','),
      'controller.listener.names': 'CONTROLLER',
      'inter.broker.listener.name': 'PLAINTEXT',
      'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      'log.dirs': join(home, 'data'),
      'auto.create.topics.enable': false,
      'group.initial.rebalance.delay.ms': 0,
      'default.replication.factor': 3,
      'min.insync.replicas': 2,
      'offsets.topic.replication.factor': 3,
      'offsets.topic.num.partitions': 6,
      'broker.session.timeout.ms': 4_000,
      'broker.heartbeat.interval.ms': 1_000,
      'replica.lag.time.max.ms': 6_000,
      'leader.imbalance.check.interval.seconds': 5,
      'leader.imbalance.per.broker.percentage': 0,
    };
    const lines = Object.entries(properties).map(([key, value]) => `${key}=${value}\n`);
    writeFileSync(join(home, 'kafka.properties'), lines.join(''));
    giveData(this.runner, home);
  }

  begin(machine) {
    const { file, args, home, env } = this.java(machine, [
      'kafka.Kafka',
      join(this.folder, machine.name, 'kafka.properties'),
    ]);
    machine.spawn(file, args, { cwd: home, stdio: 'ignore', env });
  }

  async run(machine) {
    this.begin(machine);
    const admin = new kafkajs.Kafka({
      brokers: [`${machine.address}:9092`],
      logLevel: kafkajs.logLevel.NOTHING,
    }).admin();
    await until(() => admin.connect());
    await admin.disconnect();
  }
}
