/**
 * Runs in the order of their start: all of them, those of a workflow, those under way, those that failed or were cancelled.
 * The columns never change, and a run's `state` only with `ended_at`, so its steps still update the row in place.
 */
export function workflowIndexes(table: (name: string) => string): string[] {
  const runs = table('workflow_runs');
  return [
    `create index workflow_runs_created on ${runs} (created_ms, no)`,
    `create index workflow_runs_url on ${runs} (url, created_ms, no)`,
    `create index workflow_runs_under_way on ${runs} (created_ms, no) where ended_at is null`,
    `create index workflow_runs_in_vain on ${runs} (created_ms, no) where state in ('RUN_FAILED', 'RUN_CANCELED')`,
  ];
}
