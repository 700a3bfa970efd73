import { IncomingMessage, ServerResponse } from 'node:http';
import express, {} from 'express';
import { HttpError, toHttpError } from './errors.js';
import { Exchange } from './exchange.js';
import { JSON_TYPE, mountInstance } from './mount.js';
/**
 * One Express app over the given mounts and, where given, the operations' pages.
 *
 * Express sets the prototypes of every request and response to its own; on Node 20 that makes each of them slow
 * (measured: 13k instead of 39k requests a second). Here the server creates its messages with classes whose
 * prototypes already are the app's `request` and `response`, so Express changes nothing.
 */
export function buildApp(core, mounts, operations) {
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.enable('case sensitive routing');
    app.set('query parser', false);
    class AppRequest extends IncomingMessage {
    }
    class AppResponse extends ServerResponse {
    }
    adopt(app, AppRequest, 'request');
    adopt(app, AppResponse, 'response');
    const longestFirst = [...mounts].sort((a, b) => b.path.length - a.path.length);
    for (const { path, instance } of longestFirst) {
        if (path !== '/')
            app.use(path, mountInstance(core, instance));
    }
    operations?.mount(app);
    for (const { instance } of longestFirst.filter(({ path }) => path === '/'))
        app.use(mountInstance(core, instance));
    mountFallbacks(app, core);
    return { handle: app, IncomingMessage: AppRequest, ServerResponse: AppResponse };
}
function adopt(app, messageClass, kind) {
    Object.setPrototypeOf(messageClass.prototype, express[kind]);
    Object.defineProperty(messageClass.prototype, 'app', { value: app, configurable: true, writable: true });
    Object.defineProperty(app, kind, { value: messageClass.prototype, configurable: true, writable: true });
}
function mountFallbacks(app, core) {
    const sendError = (exchange, error) => {
        if (error.status >= 500)
            core.log.error({ err: error, requestId: exchange.requestId }, 'request failed');
        const body = JSON.stringify({ error: error.message, status: error.status });
        exchange.send(error.status, JSON_TYPE, body, error.headers);
    };
    app.use((request, response) => {
        new Exchange(core, request, response, sendError).fail(new HttpError('not_found'));
    });
    app.use((error, request, response, _next) => {
        if (response.headersSent)
            return;
        const status = error.status;
        const translated = status === 400
            ? new HttpError('invalid_request', 'The path is not valid.', { cause: error })
            : toHttpError(error);
        new Exchange(core, request, response, sendError).fail(translated);
    });
}
//# sourceMappingURL=app.js.map