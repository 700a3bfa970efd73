import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogOutput } from '../../../src/lib/log-output.js';

const folder = mkdtempSync(join(tmpdir(), 'portico-log-'));

afterAll(() => rmSync(folder, { recursive: true }));

it('writes every line in order, also those that still wait at the end', async () => {
  const file = join(folder, 'log');
  const fd = openSync(file, 'w');
  const output = new LogOutput(fd);
  const lines = Array.from({ length: 200 }, (_, i) => `line ${i}: ${'ä'.repeat(i)}\n`);
  for (const line of lines) output.write(line);
  await output.settled(10_000);
  expect(readFileSync(file, 'utf8')).toBe(lines.join(''));
  output.write('first\n');
  output.write('second\n');
  output.flush();
  await output.settled(10_000);
  expect(readFileSync(file, 'utf8').slice(lines.join('').length).split('\n').sort()).toEqual([
    '',
    'first',
    'second',
  ]);
  closeSync(fd);
});

it('drops what cannot be written, and neither throws nor waits', async () => {
  const fd = openSync('/dev/full', 'w');
  const output = new LogOutput(fd);
  for (let i = 0; i < 10; i++) output.write('a line\n');
  await output.settled(10_000);
  output.write('another\n');
  output.write('and one that waits\n');
  output.flush();
  await output.settled(10_000);
  closeSync(fd);
});
