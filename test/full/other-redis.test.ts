import { writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { type LauncherUnderTest, launcherUnderTest } from '../support/launcher.js';

/** What the launcher does with data that another Redis has written. */
let launcher: LauncherUnderTest;

jest.setTimeout(300_000);

beforeAll(async () => {
  launcher = await launcherUnderTest();
});
afterEach(async () => {
  await launcher.portico('stop');
});
afterAll(async () => {
  await launcher?.remove();
});

describe('JSON commands', () => {
  it("come with Redis' own module, and data that hold JSON values are not given to a Redis without it", async () => {
    const first = await launcher.start('--detach');
    expect(first.out).toContain("JSON commands by Redis' own module, licence RSALv2 or SSPLv1");
    expect(await launcher.command(['JSON.SET', 'document', '$', '{"a":[1,2]}'])).toEqual({ result: 'OK' });
    await launcher.portico('stop');
    launcher.environment.PORTICO_REDIS_JSON = 'off';
    try {
      const without = await launcher.start('--detach');
      expect(without.code).toBe(1);
      expect(without.out).toMatch(/NOT AVAILABLE: the data in .*data\/redis hold JSON values/);
    } finally {
      delete launcher.environment.PORTICO_REDIS_JSON;
    }
    await launcher.portico('stop');
    await launcher.start('--detach');
    expect(await launcher.command(['JSON.GET', 'document', '$.a[1]'])).toEqual({ result: '[2]' });
    await launcher.command(['DEL', 'document']);
  });
});

describe('data of another Redis', () => {
  it('are taken over from an older one, and not given to one that cannot read them', async () => {
    await launcher.start('--detach');
    await launcher.command(['SET', 'kept', 'yes']);
    await launcher.portico('stop');
    writeFileSync(launcher.stateFile('data/redis.version'), '7.0\n');
    await launcher.start('--detach');
    expect(await launcher.command(['GET', 'kept'])).toEqual({ result: 'yes' });
    await launcher.portico('stop');
    writeFileSync(launcher.stateFile('data/redis.version'), '99.0\n');
    const refused = await launcher.start('--detach');
    expect(refused.out).toMatch(/NOT AVAILABLE: the data in .*data\/redis are Redis 99\.0's/);
    await rename(launcher.stateFile('data/redis'), launcher.stateFile('data/redis.aside'));
    await launcher.portico('stop');
    expect((await launcher.start('--detach')).out).not.toContain('NOT AVAILABLE');
  });
});
