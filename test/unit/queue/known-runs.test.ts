import { KnownRuns } from '../../../src/services/queue/workflow/known-runs.js';
import type { KnownRun } from '../../../src/services/queue/workflow/run.js';

const run = (id: string, more: Partial<KnownRun> = {}): KnownRun => ({
  no: '1',
  id,
  createdMs: 1,
  url: 'http://app.example/',
  labels: [],
  callerIp: null,
  settings: {
    delivery: { headers: {}, maxRetries: 3, timeoutMs: null },
    failure: null,
    holds: true,
    isLazy: true,
    detects: true,
    needsSdk: false,
  },
  awaitsSdk: false,
  invoker: null,
  ...more,
});

it('remembers the thousand runs that were used last', () => {
  const known = new KnownRuns();
  for (let i = 0; i < 1_000; i++) known.add(run(`run-${i}`));
  expect(known.get('run-0')?.id).toBe('run-0');
  known.add(run('another'));
  expect(known.get('run-0')?.id).toBe('run-0');
  expect(known.get('run-1')).toBeUndefined();
  known.forget('run-0');
  expect(known.get('run-0')).toBeUndefined();
});

it('remembers no more than a MiB of what runs were started with, and nothing that is large by itself', () => {
  const known = new KnownRuns();
  for (let i = 0; i < 30; i++) known.add(run(`run-${i}`, { labels: ['x'.repeat(80_000)] }));
  const kept = Array.from({ length: 30 }, (_, i) => known.get(`run-${i}`)).filter((one) => one !== undefined);
  expect(kept.map(({ id }) => id)).toEqual(Array.from({ length: 13 }, (_, i) => `run-${17 + i}`));
  known.add(run('large', { labels: ['x'.repeat(200_000)] }));
  expect(known.get('large')).toBeUndefined();
});

it('does not remember a run whose settings are still to come', () => {
  const known = new KnownRuns();
  known.add(run('new', { awaitsSdk: true }));
  expect(known.get('new')).toBeUndefined();
});
