import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The codings that the build packs files in, the shortest first, and what each adds to a file's name. */
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

/** One file of the page, as it is and as it was packed by the build. */
export interface PageFile {
  readonly type: string;
  readonly tag: string;
  /** Its name holds a digest of what is in it. */
  readonly isHashed: boolean;
  readonly plain: Buffer;
  readonly packed: Readonly<Record<string, Buffer>>;
}

/** Some 300 kB in all, read when the first of them is asked for and then kept. */
export class PageFiles {
  private files: Promise<ReadonlyMap<string, PageFile>> | undefined;

  /** @param folder that the build has made */
  constructor(private readonly folder: string) {}

  /** @param path below the page, such as `assets/index-1a2b3c4d.js`; empty: the page itself */
  async find(path: string): Promise<PageFile | undefined> {
    this.files ??= readAll(this.folder).catch((error) => {
      // what could not be read once may be read the next time
      this.files = undefined;
      throw error;
    });
    return (await this.files).get(path === '' ? 'index.html' : path);
  }
}

async function readAll(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>();
  if (!existsSync(folder)) return files;
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(relative(folder, path).split(sep).join('/'), await readOne(path, type));
  }
  return files;
}

async function readOne(path: string, type: string): Promise<PageFile> {
  const plain = await readFile(path);
  const packed: Record<string, Buffer> = {};
  for (const [coding, ending] of CODINGS) {
    if (existsSync(path + ending)) packed[coding] = await readFile(path + ending);
  }
  const tag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return { type, tag, isHashed: path.split(sep).includes('assets'), plain, packed };
}

/** The coding of a file that a client takes, by its `Accept-Encoding`; `undefined`: as it is. */
export function codingFor(accepted: string | string[] | undefined, file: PageFile): string | undefined {
  const wanted = String(accepted ?? '')
    .split(',')
    .filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
    .map((part) => part.split(';')[0]?.trim());
  return CODINGS.map(([coding]) => coding).find(
    (coding) => wanted.includes(coding) && file.packed[coding] !== undefined,
  );
}
