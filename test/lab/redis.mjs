import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { programOf } from '../../compose/native/programs/programs.mjs';
import { commandAs, giveData } from '../../compose/native/unprivileged.mjs';
import { until } from './postgres.mjs';

const NAME = 'portico';

/** A primary with two replicas, and a Sentinel on each of the three machines. */
export class RedisSentinels {
  constructor({ p, runner, folder, machines }) {
    Object.assign(this, { p, runner, folder, machines });
  }

  get settings() {
    return {
      url: `redis://${NAME}`,
      sentinels: this.machines.map(({ address }) => `${address}:26379`),
    };
  }

  async start() {
    for (const machine of this.machines) this.configure(machine);
    await Promise.all(this.machines.map((machine) => this.run(machine)));
    await until(() =>
      this.ask(this.machines[0], 26_379, async (sentinel) => {
        const state = await sentinel.call('SENTINEL', 'CKQUORUM', NAME);
        const replicas = await sentinel.call('SENTINEL', 'REPLICAS', NAME);
        if (!/^OK 3/.test(state) || replicas.length < 2) throw new Error(state);
      }),
    );
  }

  /** Redis and its Sentinel write what they learn into these files. */
  configure({ name, address }) {
    const [first] = this.machines;
    const home = join(this.folder, name);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const common = ['protected-mode no', `dir ${home}`, 'save ""'];
    const server = [
      ...common,
      'port 6379',
      'appendonly yes',
      // a primary that is cut off takes no writes after two seconds: what it took would be lost
      'min-replicas-to-write 1',
      'min-replicas-max-lag 2',
      'repl-ping-replica-period 1',
      'repl-timeout 5',
      `replica-announce-ip ${address}`,
      ...(address === first.address ? [] : [`replicaof ${first.address} 6379`]),
    ];
    const sentinel = [
      'protected-mode no',
      `dir ${home}`,
      'port 26379',
      `sentinel announce-ip ${address}`,
      `sentinel monitor ${NAME} ${first.address} 6379 2`,
      `sentinel down-after-milliseconds ${NAME} 2000`,
      `sentinel failover-timeout ${NAME} 6000`,
    ];
    writeFileSync(join(home, 'redis.conf'), `${server.join('\n')}\n`);
    writeFileSync(join(home, 'sentinel.conf'), `${sentinel.join('\n')}\n`);
    giveData(this.runner, home);
  }

  async run(machine) {
    const home = join(this.folder, machine.name);
    const program = join(programOf(this.p, 'redis').tree, 'usr/bin/redis-server');
    for (const args of [[join(home, 'redis.conf')], [join(home, 'sentinel.conf'), '--sentinel']]) {
      const command = commandAs(this.runner, program, args);
      const env = { ...process.env, LC_ALL: 'C.UTF-8', ...command.env };
      machine.spawn(command.file, command.args, { cwd: home, stdio: 'ignore', env });
    }
    for (const port of [6_379, 26_379]) await until(() => this.ask(machine, port, (client) => client.ping()));
  }

  /** The machine of the primary. */
  async primary() {
    const found = this.machines.map(async (machine) => {
      const [address] = await this.ask(machine, 26_379, (client) =>
        client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME),
      );
      return this.machines.find((one) => one.address === address);
    });
    return Promise.any(found);
  }

  async ask({ address }, port, work) {
    const client = new Redis({
      host: address,
      port,
      retryStrategy: () => null,
      commandTimeout: 3_000,
      connectTimeout: 2_000,
    });
    client.on('error', () => undefined);
    try {
      return await work(client);
    } finally {
      client.disconnect();
    }
  }
}
