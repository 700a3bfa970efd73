import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { type LauncherUnderTest, launcherUnderTest } from '../support/launcher.js';

let launcher: LauncherUnderTest;

beforeAll(async () => {
  launcher = await launcherUnderTest();
  expect(await launcher.control('start', 'postgres')).toMatchObject({ code: 0 });
});

afterAll(async () => {
  await launcher.control('stop');
  await launcher.remove();
});

const pidOf = (name: string) =>
  Number(readFileSync(launcher.stateFile('run', `${name}.pid`), 'utf8').split(' ')[0]);

/** Whose password the launcher made. */
function client(): Client {
  const secrets = readFileSync(launcher.stateFile('secrets.env'), 'utf8');
  const password = /^PORTICO_POSTGRES_PASSWORD=(.*)$/m.exec(secrets)?.[1] ?? '';
  const place = { host: '127.0.0.1', port: launcher.base + 2, user: 'portico', database: 'portico' };
  const made = new Client({ ...place, password });
  // that it is cut off is what the test is about
  made.on('error', () => undefined);
  return made;
}

it('a Postgres that was killed starts again although one of its children holds on', async () => {
  const before = client();
  await before.connect();
  await before.query('create table kept (n int); insert into kept values (1)');
  const { rows } = await before.query<{ pid: number }>('select pg_backend_pid() as pid');
  // as one that the machine gives no time: it cannot see that its parent is gone
  process.kill(rows[0]?.pid ?? 0, 'SIGSTOP');
  process.kill(pidOf('postgres'), 'SIGKILL');
  expect(await launcher.control('start', 'postgres')).toMatchObject({ code: 0 });
  const after = client();
  await after.connect();
  expect((await after.query('select n from kept')).rows).toEqual([{ n: 1 }]);
  await after.end();
});
