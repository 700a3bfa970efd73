/** One step into metadata: a key, a place in an array, or a place counted from its end (1 is the last). */
export type Step = { readonly key: string } | { readonly place: number } | { readonly fromEnd: number };

export type Path = readonly Step[];

export type Literal = string | number | boolean;

export type Order = '<' | '<=' | '>' | '>=';

/** A filter as a tree. */
export type Filter =
  | { readonly is: 'and' | 'or'; readonly of: readonly Filter[] }
  | { readonly is: 'exists'; readonly path: Path; readonly negated: boolean }
  | { readonly is: 'equal'; readonly path: Path; readonly value: Literal; readonly negated: boolean }
  | { readonly is: 'order'; readonly path: Path; readonly order: Order; readonly value: number }
  | { readonly is: 'glob'; readonly path: Path; readonly glob: Glob; readonly negated: boolean }
  | { readonly is: 'in'; readonly path: Path; readonly values: readonly Literal[]; readonly negated: boolean }
  | { readonly is: 'contains'; readonly path: Path; readonly value: Literal; readonly negated: boolean };

/** Parts of a pattern: literal text, `*`, `?`, or a class of characters. */
export type Glob = readonly GlobPart[];

export type GlobPart =
  | { readonly text: string }
  | { readonly any: 'one' | 'many' }
  | { readonly ranges: readonly (readonly [string, string])[]; readonly negated: boolean };
