/** The words of a line as redis-cli splits it: blanks between them, quotes around what holds some, backslashes in double ones. */
export function splitLine(line: string): string[] {
  const words: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\')*)'|(\S+)/gs;
  for (const [, double, single, bare] of line.matchAll(pattern)) {
    if (double !== undefined) words.push(double.replace(/\\(.)/g, (_, c: string) => ESCAPES[c] ?? c));
    else if (single !== undefined) words.push(single.replaceAll(`\\'`, `'`));
    else words.push(bare ?? '');
  }
  return words;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
