import express, {} from 'express';
import { authenticator, challenge } from './auth.js';
import { parseJson, readBody } from './body.js';
import { HttpError, toHttpError } from './errors.js';
import { Exchange } from './exchange.js';
import { withContractNames } from './headers.js';
import { JsonText, Reply } from './route.js';
export const JSON_TYPE = 'application/json; charset=utf-8';
/** An Express router for one instance: credentials first, then its table of routes, then 404 in its contract's shape. */
export function mountInstance(core, instance) {
    const router = express.Router({ caseSensitive: true });
    const authenticate = authenticator(instance.auth);
    const unauthorized = { headers: { 'WWW-Authenticate': challenge(instance.auth) } };
    const sendError = (exchange, error) => {
        logError(core, exchange, error);
        exchange.send(error.status, JSON_TYPE, JSON.stringify(instance.formatError(error)), error.headers);
    };
    router.use((request, response, next) => {
        const exchange = new Exchange(core, request, response, sendError);
        request.exchange = exchange;
        if (core.inFlight > core.settings.maxInFlight)
            return exchange.fail(new HttpError('overloaded'));
        const principal = authenticate(request);
        if (principal === undefined)
            return exchange.fail(new HttpError('unauthorized', undefined, unauthorized));
        exchange.principal = principal;
        exchange.limitTo(instance.timeoutMs);
        next();
    });
    const isPrefix = (route) => route.kind === 'raw' && route.prefix === true;
    for (const [path, routes] of routesByPath(instance.routes.filter((route) => !isPrefix(route))))
        mountPath(router, path, routes, instance);
    for (const [path, routes] of routesByPath(instance.routes.filter(isPrefix)))
        mountPath(router, path, routes, instance);
    router.use((request) => {
        request.exchange.fail(new HttpError('not_found'));
    });
    // Express reports what it cannot route (a bad percent escape) through its error handlers, known by four parameters
    router.use((error, request, _response, _next) => {
        const status = error.status;
        const translated = status === 400
            ? new HttpError('invalid_request', 'The path is not valid.', { cause: error })
            : toHttpError(error);
        request.exchange.fail(translated);
    });
    return router;
}
function routesByPath(routes) {
    const paths = new Map();
    for (const route of routes) {
        const same = paths.get(route.path);
        if (same === undefined)
            paths.set(route.path, [route]);
        else
            same.push(route);
    }
    return paths;
}
function mountPath(router, path, routes, instance) {
    const byMethod = new Map();
    for (const route of routes) {
        for (const method of route.methods)
            byMethod.set(method, route);
    }
    const get = byMethod.get('GET');
    if (get !== undefined && !byMethod.has('HEAD'))
        byMethod.set('HEAD', get);
    const allow = [...byMethod.keys()].join(', ');
    const dispatch = (request) => {
        const { exchange } = request;
        const route = byMethod.get(request.method);
        if (route === undefined) {
            exchange.fail(new HttpError('method_not_allowed', `Use one of: ${allow}.`, { headers: { Allow: allow } }));
            return;
        }
        exchange.operationId = route.operationId;
        const work = route.kind === 'raw' ? serveRaw(route, request, instance) : serveJson(route, request, instance);
        work.catch((error) => exchange.fail(toHttpError(error)));
    };
    if (routes.some((route) => route.kind === 'raw' && route.prefix === true))
        router.use(path, dispatch);
    else
        router.all(path, dispatch);
}
async function bodyOf(request, exchange, limit) {
    exchange.bodyProgress();
    const body = await readBody(request, limit, () => exchange.bodyProgress());
    exchange.bodyDone();
    return body;
}
async function serveRaw(route, request, instance) {
    const { exchange } = request;
    const body = await bodyOf(request, exchange, instance.bodyLimit);
    const raw = { method: request.method, target: request.url, headers: request.headers, body };
    const reply = await route.handle(raw, exchange, undefined);
    exchange.send(reply.status, reply.contentType ?? JSON_TYPE, reply.body, reply.headers);
}
async function serveJson(route, request, instance) {
    const { exchange } = request;
    const schemas = route.request ?? {};
    const body = await bodyOf(request, exchange, instance.bodyLimit);
    const input = {
        params: checked(schemas.params, 'path', () => request.params),
        query: checked(schemas.query, 'query', () => queryOf(request.url)),
        headers: checked(schemas.headers, 'header', () => withContractNames(request.headers)),
        body: checked(schemas.body, 'body', () => parseJson(body)),
    };
    if (route.timeoutMs !== undefined)
        exchange.limitTo(route.timeoutMs(input));
    const value = await route.handle(input, exchange, undefined);
    if (value instanceof JsonText)
        exchange.send(200, JSON_TYPE, value.text);
    else if (value instanceof Reply)
        exchange.send(value.status, JSON_TYPE, JSON.stringify(value.body), value.headers);
    else
        exchange.send(200, JSON_TYPE, JSON.stringify(value));
}
function queryOf(url) {
    const start = url.indexOf('?');
    return start < 0 ? {} : Object.fromEntries(new URLSearchParams(url.slice(start + 1)));
}
function checked(schema, part, value) {
    if (schema === undefined)
        return undefined;
    const result = schema.safeParse(value());
    if (result.success)
        return result.data;
    throw new HttpError('invalid_request', describeIssues(part, result.error.issues), { cause: result.error });
}
/** At most three issues, each as `body.topK: expected number`. */
function describeIssues(part, issues) {
    const shown = issues
        .slice(0, 3)
        .map((issue) => `${[part, ...issue.path].map(String).join('.')}: ${issue.message}`);
    if (issues.length > 3)
        shown.push(`and ${issues.length - 3} more`);
    return shown.join('; ');
}
function logError(core, exchange, error) {
    if (error.status < 500 || error.code === 'stopping')
        return;
    const level = error.code === 'internal' ? 'error' : 'warn';
    core.log[level]({ err: error, requestId: exchange.requestId, operation: exchange.operationId, status: error.status }, 'request failed');
}
//# sourceMappingURL=mount.js.map