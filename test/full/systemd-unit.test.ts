import { spawnSync } from 'node:child_process';

const UNIT = 'compose/systemd/portico.service';

it('systemd understands the unit and finds it well shut off, where it is there to ask', () => {
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', UNIT], { encoding: 'utf8' });
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return;
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const security = ['security', '--offline=true', '--threshold=30', UNIT];
  expect(spawnSync('systemd-analyze', security, { encoding: 'utf8' }).status).toBe(0);
});
