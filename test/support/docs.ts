import { readdirSync, readFileSync } from 'node:fs';

/** A block of code of a page. */
export interface Snippet {
  /** Such as `docs/kv.md:12`. */
  readonly place: string;
  readonly page: string;
  readonly language: string;
  readonly text: string;
  /** Why no test runs it, as the page says in a comment before it. */
  readonly notRun?: string;
}

/** Every page that people read. */
export const PAGES: readonly string[] = [
  'README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

export const textOf = (page: string): string => readFileSync(page, 'utf8');

/** The blocks of a page, in order. */
export function snippetsOf(page: string): Snippet[] {
  const blocks = textOf(page).matchAll(/(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm);
  return [...blocks].map(({ index, 1: notRun, 2: language = '', 3: text = '', input }) => ({
    place: `${page}:${input.slice(0, index).split('\n').length}`,
    page,
    language,
    text,
    ...(notRun === undefined ? {} : { notRun }),
  }));
}

/** As GitHub makes them of headings. */
export function anchorsOf(page: string): string[] {
  const text = textOf(page).replace(/^```[\s\S]*?^```$/gm, '');
  return [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

/** Languages whose blocks a machine can run. */
export const RUNNABLE = ['sh', 'ts', 'js', 'python'];
