import { effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const STORE = 'portico.console.theme';

function stored(): Theme {
  const value = localStorage.getItem(STORE);
  return value === 'light' || value === 'dark' ? value : 'system';
}

export const theme = signal<Theme>(stored());

/** Counts how often the colours have changed, for what is drawn rather than styled. */
export const repaint = signal(0);

export function followTheme(): void {
  effect(() => {
    if (theme.value === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    localStorage.setItem(STORE, theme.value);
    repaint.value = repaint.peek() + 1;
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    repaint.value += 1;
  });
}

const NEXT = { system: 'light', light: 'dark', dark: 'system' } as const;

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}
