import { useState } from 'preact/hooks';
import { pretty } from '../data/format.js';
import { Button } from './controls.js';

/** Copies text; where the browser has no clipboard for this page, says so. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [state, setState] = useState<string>();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState('Copied');
    } catch {
      setState('No clipboard here');
    }
    setTimeout(() => setState(undefined), 1_500);
  };
  return (
    <Button kind="quiet" isSmall onClick={copy}>
      {state ?? label}
    </Button>
  );
}

interface CodeProps {
  readonly title: string;
  readonly text: string;
  /** Where several on a page have the same title. */
  readonly label?: string;
  /** Laid out, where it is JSON. */
  readonly isPretty?: boolean;
}

export function Code({ title, label = title, text, isPretty = false }: CodeProps) {
  const shown = isPretty ? pretty(text) : text;
  return (
    <div class="code">
      <div class="code-head">
        <span>{title}</span>
        <CopyButton text={shown} label="Copy" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section class="code-body" tabIndex={0} aria-label={label}>
        <pre>{shown === '' ? ' ' : shown}</pre>
      </section>
    </div>
  );
}

interface SnippetsProps {
  readonly curl: string;
  readonly sdk: string;
}

/** The same by hand and by program; the token stands as a variable in both. */
export function Snippets({ curl, sdk }: SnippetsProps) {
  return (
    <div class="stack">
      <Code title="curl" text={curl} />
      <Code title="TypeScript" text={sdk} />
    </div>
  );
}
