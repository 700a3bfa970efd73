import { IncomingMessage, ServerResponse } from 'node:http';
import express, { type Express } from 'express';
import { HttpError, routingError } from '../errors.js';
import { errorSender, sendPlainError } from '../exchange/error-sender.js';
import { Exchange } from '../exchange/exchange.js';
import type { HttpCore } from '../exchange/http-core.js';
import { acceptHeadBlock } from '../head/head-block.js';
import type { ServiceInstance } from '../instance.js';
import { routeTable } from '../routing/route-table.js';
import { type ErrorWording, errorWording } from './error-wording.js';

/** An Express app and the message classes that its server must use. */
export interface App {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Answers a request that is not looked at any further. */
  readonly refuse: (request: IncomingMessage, response: ServerResponse, error: HttpError) => void;
  /** The body that answers an error before there is a request. @param target of the request, as far as it is known */
  readonly errorBody: (target: string | undefined, error: HttpError) => string;
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
}

/** What is served beside the instances, at paths of its own. */
export interface Pages {
  /** Where they are, also where an instance is mounted at `/`. */
  readonly paths: readonly string[];
  mount(app: Express): void;
}

/** An instance and the path it is served at in this app. */
export interface MountedAt {
  readonly path: string;
  readonly instance: ServiceInstance;
}

/**
 * One Express app over the given mounts and, where given, pages beside them.
 *
 * Express sets the prototypes of every request and response to its own; on Node 20 that makes each of them slow
 * (measured: 13k instead of 39k requests a second). Here the server creates its messages with classes whose
 * prototypes already are the app's `request` and `response`, so Express changes nothing.
 */
export function buildApp(core: HttpCore, mounts: readonly MountedAt[], pages: Pages | undefined): App {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('query parser', false);

  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  adopt(app, AppRequest, 'request');
  adopt(app, AppResponse, 'response');
  acceptHeadBlock(AppResponse.prototype);

  const longestFirst = [...mounts].sort((a, b) => b.path.length - a.path.length);
  const serveRoutes = routeTable(core, longestFirst, pages?.paths ?? []);
  app.use((request, response, next) => {
    if (!serveRoutes(request, response)) next();
  });
  pages?.mount(app);
  const wording = errorWording(longestFirst);
  mountFallbacks(app, core, wording);
  const refuse: App['refuse'] = (request, response, error) => {
    const format = wording.ofRequest(request, request.url ?? '');
    new Exchange(core, request, response, errorSender(format)).fail(error);
  };
  const handle: App['handle'] = (request, response) => {
    const { url } = request;
    if (request.headers.host === undefined && request.httpVersionMinor > 0) {
      const headers = { Connection: 'close' };
      refuse(
        request,
        response,
        new HttpError('invalid_request', 'HTTP/1.1 asks for the header Host.', { headers }),
      );
      return;
    }
    if (url !== undefined && url[0] !== '/') request.url = originForm(url);
    if (request.method === 'OPTIONS' && answerPreflight(core, request, response)) return;
    app(request as express.Request, response as express.Response);
  };
  return {
    handle,
    refuse,
    errorBody: (target, error) => JSON.stringify(wording.ofTarget(target)(error)),
    IncomingMessage: AppRequest,
    ServerResponse: AppResponse as typeof ServerResponse,
  };
}

/** Answers a preflight, whatever its path, without a token: browsers send none with it. @returns false when it is none */
function answerPreflight(core: HttpCore, request: IncomingMessage, response: ServerResponse): boolean {
  const headers = core.cors?.preflight(request);
  if (headers === undefined) return false;
  const exchange = new Exchange(core, request, response, sendPlainError);
  exchange.operationId = 'http.preflight';
  exchange.sendEmpty(204, headers);
  return true;
}

/**
 * Clients of a proxy send the whole address; RFC 9112, 3.2.2, has a server take it like the path alone. What begins
 * with a star, which stands for the whole server, is a path like any other.
 */
function originForm(target: string): string {
  const rest = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function adopt(app: Express, messageClass: { prototype: object }, kind: 'request' | 'response'): void {
  Object.setPrototypeOf(messageClass.prototype, express[kind]);
  Object.defineProperty(messageClass.prototype, 'app', { value: app, configurable: true, writable: true });
  Object.defineProperty(app, kind, { value: messageClass.prototype, configurable: true, writable: true });
}

function mountFallbacks(app: Express, core: HttpCore, wording: ErrorWording): void {
  const fail = (request: express.Request, response: express.Response, error: HttpError) => {
    const format = wording.ofRequest(request, request.originalUrl);
    new Exchange(core, request, response, errorSender(format)).fail(error);
  };
  app.use((request, response) => fail(request, response, new HttpError('not_found')));
  app.use((error: unknown, request: express.Request, response: express.Response, _next: unknown) => {
    if (response.headersSent) return;
    fail(request, response, routingError(error));
  });
}
