import { Badge, type Tone } from '../../parts/layout.js';

export const TONES: Readonly<Record<string, Tone>> = {
  CREATED: 'plain',
  ACTIVE: 'info',
  RETRY: 'warn',
  ERROR: 'bad',
  DELIVERED: 'good',
  FAILED: 'bad',
  CANCELED: 'plain',
  CANCEL_REQUESTED: 'plain',
  RUN_STARTED: 'info',
  RUN_SUCCESS: 'good',
  RUN_FAILED: 'bad',
  RUN_CANCELED: 'plain',
  STEP_PROGRESS: 'info',
  STEP_SUCCESS: 'good',
  STEP_RETRY: 'warn',
  STEP_FAILED: 'bad',
  STEP_CANCELED: 'plain',
};

/** `RUN_SUCCESS` is `success`. */
export const wordOf = (state: string) =>
  state
    .replace(/^(RUN|STEP)_/, '')
    .toLowerCase()
    .replaceAll('_', ' ');

export function StateBadge({ state }: { readonly state: string }) {
  return <Badge tone={TONES[state] ?? 'plain'}>{wordOf(state)}</Badge>;
}
