import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { services } from '../../src/services/index.js';

/** What lies beside the rooms of a service: the same part under the same name in each. */
const PARTS = {
  'index.ts': 'the service object',
  'settings.ts': 'its section of the configuration',
  'mount.ts': 'where an instance is served, and for whom',
  'runtime.ts': 'connects everything',
  'routes.ts': 'the table of its routes',
  'deps.ts': 'what the routes work with',
  'errors.ts': 'its error body, and what errors of its backend mean',
};

/** Where there is such a part, it is called like this; what belongs to something else has that before it, in a room. */
const ROLES = [...Object.keys(PARTS), 'metrics.ts', 'schemas.ts'];

it.each(services)('$name has the parts that every service has', ({ name }) => {
  const folder = join('src/services', name);
  expect(Object.keys(PARTS).filter((part) => !existsSync(join(folder, part)))).toEqual([]);
});

it.each(services)('no part of $name that others have too is called otherwise', ({ name }) => {
  const beside = readdirSync(join('src/services', name)).filter((file) => file.endsWith('.ts'));
  const otherwise = beside.filter((file) =>
    ROLES.some((role) => role !== 'index.ts' && file.endsWith(`-${role}`)),
  );
  expect(otherwise).toEqual([]);
  expect(beside).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/^(client|config|open-.*)\.ts$/)]),
  );
});

it('has a folder below src/services for each service, and no other', () => {
  const folders = readdirSync('src/services', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).sort()).toEqual(services.map(({ name }) => name).sort());
});

it('has no folder that holds more than 30 files side by side', () => {
  // docs/decisions is a numbered list
  const holding = ['src', 'test', 'compose'].flatMap((top) => {
    const counts = new Map<string, number>();
    for (const entry of readdirSync(top, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) counts.set(entry.parentPath, (counts.get(entry.parentPath) ?? 0) + 1);
    return [...counts].filter(([, count]) => count > 30);
  });
  expect(holding).toEqual([]);
});
