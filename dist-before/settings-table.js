import { configLeaves, ENVIRONMENT_PREFIX } from './config.js';
import { variableName } from './lib/settings-environment.js';
/** Every key of the configuration as a Markdown table: key, default, environment variable, meaning. */
export function settingsTable() {
    const rows = configLeaves().map((leaf) => `| ${cells(leaf).join(' | ')} |`);
    return ['| key | default | environment variable | meaning |', '|---|---|---|---|', ...rows, ''].join('\n');
}
function cells(leaf) {
    const key = leaf.path.reduce((text, step) => (step === '#' ? `${text}[]` : text === '' ? step : `${text}.${step}`), '');
    const variable = leaf.env ?? variableName(leaf.path, ENVIRONMENT_PREFIX);
    return [
        `\`${key}\``,
        `\`${JSON.stringify(leaf.byDefault ?? null)}\``,
        `\`${variable}\``,
        leaf.description.replaceAll('|', '\\|'),
    ];
}
//# sourceMappingURL=settings-table.js.map