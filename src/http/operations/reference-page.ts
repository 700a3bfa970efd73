import { readFile } from 'node:fs/promises';
import { HttpError } from '../errors.js';
import { type StaticFile, staticFile } from './static-files.js';

/**
 * What the pages of `/docs` may load: nothing from elsewhere. Scalar writes its styles into the page, which is why they
 * need not be files; scripts must.
 */
export const REFERENCE_SOURCES = {
  scriptSrc: ["'self'"],
  styleSrc: ["'self'", "'unsafe-inline'"],
  connectSrc: ["'self'"],
  imgSrc: ["'self'", 'data:'],
  fontSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
} as const;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Portico</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
</head>
<body>
<div id="reference"></div>
<noscript>This page is a script; the same is in <a href="openapi.json">openapi.json</a>.</noscript>
<script src="docs/scalar.js"></script>
<script src="docs/page.js"></script>
</body>
</html>
`;

/** Its requests go to the gateway and nowhere else: no proxy, no fonts, no telemetry. */
const SCRIPT = `Scalar.createApiReference('#reference', {
  url: new URL('openapi.json', document.baseURI).pathname,
  proxyUrl: '',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  persistAuth: false,
});
`;

/** The file of Scalar beside the gateway's program, which the build has put there. */
const SCALAR = new URL('./docs/scalar.js', import.meta.url);

const HTML = 'text/html; charset=utf-8';
const JAVASCRIPT = 'text/javascript; charset=utf-8';

const MAKERS: Readonly<Record<string, () => Promise<StaticFile>>> = {
  '/docs': () => staticFile(HTML, PAGE),
  '/docs/page.js': () => staticFile(JAVASCRIPT, SCRIPT),
  '/docs/scalar.js': async () => staticFile(JAVASCRIPT, await readFile(SCALAR).catch(missing)),
};

/** The page that shows the OpenAPI document and lets everybody try it: a few files, each packed when it is first asked for. */
export class ReferencePage {
  private readonly files = new Map<string, Promise<StaticFile>>();

  static readonly paths: readonly string[] = Object.keys(MAKERS);

  /** @throws HttpError 404 where the build has left it out */
  async file(path: string): Promise<StaticFile> {
    const made = this.files.get(path) ?? MAKERS[path]?.();
    if (made === undefined) throw new HttpError('not_found');
    this.files.set(path, made);
    // what could not be read may be there the next time
    made.catch(() => this.files.delete(path));
    return made;
  }
}

function missing(cause: unknown): never {
  throw new HttpError('not_found', 'This build has no page of its API; /openapi.json has the same.', {
    cause,
  });
}
