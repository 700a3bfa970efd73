import type { Express, Request, Response } from 'express';
import helmet from 'helmet';
import { HttpError, toHttpError } from '../../http/errors.js';
import { sendPlainError } from '../../http/exchange/error-sender.js';
import { Exchange } from '../../http/exchange/exchange.js';
import type { HttpCore } from '../../http/exchange/http-core.js';
import { codingFor, type PageFile, PageFiles } from './page-files.js';

/** A file whose name holds a digest of it never changes: a year. */
const FOR_GOOD = 'public, max-age=31536000, immutable';

/**
 * Only what the gateway itself serves is loaded or asked; nothing that stands in the page runs as script or style, so a
 * name in a key or a message that came through as markup would do nothing.
 */
const pageHeaders = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'"],
      workerSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // whoever serves it by TLS says so himself
  strictTransportSecurity: false,
});

/** Serves the console's page and its files, as mounted beside the operations' pages. */
export class PageServer {
  /** Where it is, also where an instance is mounted at `/`. */
  readonly paths: readonly string[] = ['/console', '/console/*file'];
  private readonly files: PageFiles;

  constructor(
    private readonly core: HttpCore,
    folder: string,
  ) {
    this.files = new PageFiles(folder);
  }

  mount(app: Express): void {
    app.all(this.paths as string[], pageHeaders, (request: Request, response: Response) => {
      const exchange = new Exchange(this.core, request, response, sendPlainError);
      exchange.operationId = 'console.page';
      this.answer(exchange, request).catch((error: unknown) => {
        // an error has the headers of every other one
        for (const name of response.getHeaderNames()) response.removeHeader(name);
        exchange.fail(toHttpError(error));
      });
    });
  }

  private async answer(exchange: Exchange, request: Request): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new HttpError('method_not_allowed', 'Use one of: GET, HEAD.', {
        headers: { Allow: 'GET, HEAD' },
      });
    // relative, so that it holds below whatever prefix a proxy serves it at
    if (request.path === '/console') exchange.sendPage(308, { Location: 'console/', 'Content-Length': '0' });
    else {
      const file = await this.files.find(request.path.slice('/console/'.length));
      if (file === undefined) throw new HttpError('not_found');
      sendFile(exchange, request, file);
    }
  }
}

function sendFile(exchange: Exchange, request: Request, file: PageFile): void {
  const headers = {
    'Content-Type': file.type,
    'Cache-Control': file.isHashed ? FOR_GOOD : 'no-cache',
    ETag: file.tag,
    Vary: 'Accept-Encoding',
  };
  if (request.headers['if-none-match'] === file.tag) {
    exchange.sendPage(304, headers);
    return;
  }
  const coding = codingFor(request.headers['accept-encoding'], file);
  const body = coding === undefined ? file.plain : (file.packed[coding] as Buffer);
  const packing: Record<string, string> = coding === undefined ? {} : { 'Content-Encoding': coding };
  exchange.sendPage(200, { ...headers, ...packing, 'Content-Length': String(body.length) }, body);
}
