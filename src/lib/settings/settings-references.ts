import { parsed } from './settings-environment.js';
import { keyText, type SettingLeaf } from './settings-tree.js';

type Environment = Readonly<Record<string, string | undefined>>;

const REFERENCE = /\$(\$?)\{([^}]*)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Puts environment variables into a configuration document (changed in place) wherever a text has `${NAME}`; `$${NAME}`
 * stands for the text `${NAME}`. A value that is nothing but one reference gets the type of its key.
 * @returns what is wrong, a line each
 */
export function resolveReferences(
  document: Record<string, unknown>,
  leaves: readonly SettingLeaf[],
  environment: Environment,
): string[] {
  const problems: string[] = [];
  const types = new Map(leaves.map(({ path, type }) => [path.join('.'), type]));
  const resolve = (text: string, path: readonly (string | number)[]): unknown => {
    const whole = text.replace(REFERENCE, (reference, escaped: string, name: string) => {
      if (escaped !== '') return reference.slice(1);
      const value = NAME.test(name) ? environment[name] : undefined;
      if (value === undefined || value === '')
        problems.push(
          `${keyText(path)}: the variable ${name} is not set (a plain dollar sign is written as $$)`,
        );
      return value ?? '';
    });
    const type = types.get(path.map((step) => (typeof step === 'number' ? '#' : step)).join('.'));
    return type !== undefined && /^\$\{[^}]*\}$/.test(text) ? parsed(whole, type) : whole;
  };
  const walk = (value: unknown, path: readonly (string | number)[]): unknown => {
    if (typeof value === 'string') return value.includes('${') ? resolve(value, path) : value;
    if (value === null || typeof value !== 'object') return value;
    const container = value as Record<string | number, unknown>;
    const steps = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
    for (const step of steps) container[step] = walk(container[step], [...path, step]);
    return value;
  };
  walk(document, []);
  return problems;
}
