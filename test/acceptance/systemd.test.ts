import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../support/eventually.js';
import { spawnGateway } from '../support/spawned-gateway.js';

/** What systemd does at the other end: Node has no datagram sockets of Unix, perl is a part of every Debian. */
const LISTENER = `socket(S, AF_UNIX, SOCK_DGRAM, 0) or die $!; bind(S, sockaddr_un($ARGV[0])) or die $!; $| = 1;
  print "bound\\n"; while (defined recv(S, my $m, 4096, 0)) { print "$m\\n" }`;
/** In place of `systemd-notify` where there is no systemd. */
const STAND_IN = `#!/usr/bin/perl
use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0) or die $!; send(S, join("\\n", @ARGV), 0, sockaddr_un($ENV{NOTIFY_SOCKET})) or die $!;
`;

let folder: string;
let listener: ChildProcess;
let socket: string;
let path: string;
const heard: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portico-notify-'));
  socket = join(folder, 'notify');
  const programs = (process.env.PATH ?? '').split(delimiter);
  const hasSystemd = programs.some((program) => existsSync(join(program, 'systemd-notify')));
  path = hasSystemd ? programs.join(delimiter) : [folder, ...programs].join(delimiter);
  if (!hasSystemd) {
    await writeFile(join(folder, 'systemd-notify'), STAND_IN);
    await chmod(join(folder, 'systemd-notify'), 0o755);
  }
  listener = spawn('perl', ['-MSocket', '-e', LISTENER, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (listener.stdout === null) throw new Error('no output of perl');
  createInterface({ input: listener.stdout }).on('line', (line) => {
    // by which systemd-notify waits until its message was read
    if (line !== 'BARRIER=1') heard.push(line);
  });
  await eventually(() => expect(heard).toEqual(['bound']));
});
beforeEach(() => {
  heard.length = 0;
});
afterAll(async () => {
  listener?.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** As systemd does it where somebody may be watched who is not the service itself. */
const variables = (more: Record<string, string> = {}) => ({ PATH: path, NOTIFY_SOCKET: socket, ...more });

it.each([1, 2])(
  'systemd is told when requests are accepted, that it lives, and that it stops (%d processes)',
  async (workers) => {
    const gateway = await spawnGateway({ kv: {}, http: { workers } }, variables({ WATCHDOG_USEC: '600000' }));
    await eventually(() => expect(heard.filter((line) => line === 'WATCHDOG=1').length).toBeGreaterThan(2));
    expect(heard[0]).toBe('READY=1');
    expect(heard.filter((line) => line === 'READY=1')).toHaveLength(1);
    expect(await gateway.stop()).toBe(0);
    await eventually(() => expect(heard).toContain('STOPPING=1'));
  },
);

it('no signs of life are sent for another process', async () => {
  const gateway = await spawnGateway({ kv: {} }, variables({ WATCHDOG_USEC: '600000', WATCHDOG_PID: '1' }));
  await eventually(() => expect(heard).toContain('READY=1'));
  expect(await gateway.stop()).toBe(0);
  await eventually(() => expect(heard).toContain('STOPPING=1'));
  expect(heard).toEqual(['READY=1', 'STOPPING=1']);
});
