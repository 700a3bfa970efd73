import { signal } from '@preact/signals';
import { relative, timestamp } from '../data/format.js';

/** The clock of all times on the page: one timer. */
const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);

/** How long ago, or in how long; the time itself as its title. */
export function Time({ ms }: { readonly ms: number | undefined }) {
  if (ms === undefined) return <span class="muted">–</span>;
  return (
    <time class="once" dateTime={new Date(ms).toISOString()} title={timestamp(ms)}>
      {relative(ms, now.value)}
    </time>
  );
}
