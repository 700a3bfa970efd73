import type { MetricRegistry } from '../../../lib/metric-source.js';
import type { OpenRuns } from './open-run-counter.js';
import type { RunState, StepKind } from './run.js';

/** Told what happens to runs, before it is committed. */
export interface RunCounter {
  run(state: RunState): void;
  step(kind: StepKind): void;
}

/** What is counted of workflow runs. */
export class RunMetrics implements RunCounter {
  private readonly runs = new Map<RunState, number>();
  private readonly steps = new Map<StepKind, number>();

  /** @param open runs under way, as far as they have been counted */
  constructor(registry: MetricRegistry, open: () => OpenRuns | undefined) {
    registry.add({
      name: 'portico_queue_workflow_runs_total',
      help: 'Workflow runs that this process began (started) or ended, by their state.',
      type: 'counter',
      collect: () =>
        [...this.runs].map(([state, value]) => ({
          labels: { state: state.replace('RUN_', '').toLowerCase() },
          value,
        })),
    });
    registry.add({
      name: 'portico_queue_workflow_steps_total',
      help: 'What this process appended to workflow runs: init, result, plan, toCallback, fromCallback, wait or invoke.',
      type: 'counter',
      collect: () => [...this.steps].map(([kind, value]) => ({ labels: { kind }, value })),
    });
    registry.add({
      name: 'portico_queue_workflow_runs_open',
      help: 'Workflow runs under way in all gateways, the same from each; counted once a minute.',
      type: 'gauge',
      aggregator: 'max',
      collect: () => only(open()?.count),
    });
    registry.add({
      name: 'portico_queue_workflow_runs_stuck',
      help: 'Of these, runs for which nothing is under way: no delivery, no wait, no other run. Counted once a minute.',
      type: 'gauge',
      aggregator: 'max',
      collect: () => only(open()?.stuck),
    });
  }

  run(state: RunState): void {
    this.runs.set(state, (this.runs.get(state) ?? 0) + 1);
  }

  step(kind: StepKind): void {
    this.steps.set(kind, (this.steps.get(kind) ?? 0) + 1);
  }
}

const only = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
