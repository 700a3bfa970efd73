/** JSON text that is already serialised, such as rows that the database printed as JSON. Sent as it is. */
export class JsonText {
    text;
    constructor(text) {
        this.text = text;
    }
}
/** A reply whose status or headers are not the usual ones (200, JSON). */
export class Reply {
    status;
    body;
    headers;
    constructor(status, body, headers = {}) {
        this.status = status;
        this.body = body;
        this.headers = headers;
    }
}
/**
 * Declares a JSON route of a service; the types of `input` and of the returned value come from the schemas.
 * `const route = jsonRoute<Deps>(); export const upsert = route({ operationId: 'vector.upsert', ... })`
 */
export function jsonRoute() {
    return (definition) => ({ ...definition, kind: 'json' });
}
/** Gives every route its service's deps. */
export function bindRoutes(routes, deps) {
    return routes.map((route) => ({
        ...route,
        handle: (input, context) => route.handle(input, context, deps),
    }));
}
//# sourceMappingURL=route.js.map