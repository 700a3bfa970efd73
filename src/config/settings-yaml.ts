import type { SettingLeaf } from '../lib/settings/settings-tree.js';
import { configLeaves } from './schema.js';

const HEAD = `# Portico's configuration. Every key is here with its default; a key that is left out has the same value.
# Every key also has an environment variable, which wins: its path in capitals with PORTICO_ in front, so http.port is
# PORTICO_HTTP_PORT and kv.databases[1].token is PORTICO_KV_DATABASES_1_TOKEN. Variables named below are short forms for the
# first entry of a list. With _FILE behind it, a variable names a file that holds the value. In this file, \${NAME} stands for
# the environment variable NAME ($\${NAME} for the plain text).
# Tokens and addresses that are null are brought by \`npm start\`; it uses its own backends only for services whose address is
# null here. A gateway that is started by itself leaves out the services whose address nobody gives.
`;

/** The configuration file with every key, its default and what it means. */
export function settingsYaml(): string {
  const lines: string[] = [];
  let open: readonly string[] = [];
  for (const leaf of configLeaves()) {
    lines.push(...linesOf(leaf, open));
    open = leaf.path;
  }
  return `${HEAD}${lines.join('\n')}\n`;
}

/** A key's lines, after those of the objects that it is the first key of. @param open path of the key before */
function linesOf(leaf: SettingLeaf, open: readonly string[]): string[] {
  const { path, env, byDefault } = leaf;
  const lines: string[] = [];
  let depth = path.findIndex((step, i) => step !== open[i]);
  if (depth === 0) lines.push('');
  let dash = false;
  for (; depth < path.length - 1; depth++) {
    dash = path[depth] === '#';
    if (!dash) lines.push(`${indent(depth)}${path[depth]}:`);
  }
  const margin = indent(dash ? depth - 1 : depth);
  lines.push(`${margin}# ${meaningOf(leaf)}${env === undefined ? '' : ` (${env})`}`);
  lines.push(`${margin}${dash ? '- ' : ''}${path[depth]}: ${JSON.stringify(byDefault ?? null)}`);
  return lines;
}

/** What a key means, and whether a running gateway takes a new value of it. */
export function meaningOf({ description, reload }: SettingLeaf): string {
  return reload ? `${description} SIGHUP takes a new value.` : description;
}

/** The dash of a list's entry takes the place of a step. */
function indent(depth: number): string {
  return '  '.repeat(depth);
}
