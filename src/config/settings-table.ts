import { variableName } from '../lib/settings/settings-environment.js';
import type { SettingLeaf } from '../lib/settings/settings-tree.js';
import { configLeaves, ENVIRONMENT_PREFIX } from './schema.js';
import { meaningOf } from './settings-yaml.js';

/** Every key of the configuration as a Markdown table: key, default, environment variable, meaning. */
export function settingsTable(): string {
  const rows = configLeaves().map((leaf) => `| ${cells(leaf).join(' | ')} |`);
  return ['| key | default | environment variable | meaning |', '|---|---|---|---|', ...rows, ''].join('\n');
}

function cells(leaf: SettingLeaf): string[] {
  const key = leaf.path.reduce(
    (text, step) => (step === '#' ? `${text}[]` : text === '' ? step : `${text}.${step}`),
    '',
  );
  const variable = leaf.env ?? variableName(leaf.path, ENVIRONMENT_PREFIX);
  return [
    `\`${key}\``,
    `\`${JSON.stringify(leaf.byDefault ?? null)}\``,
    `\`${variable}\``,
    meaningOf(leaf).replaceAll('|', '\\|'),
  ];
}
