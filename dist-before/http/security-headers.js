import helmet from 'helmet';
/**
 * Helmet's headers for an API reply as a flat list of names and values. They do not depend on the request, so
 * helmet writes them once, into this list: as middleware it costs about a third of the requests per second.
 */
export function securityHeaders() {
    const headers = [];
    const recorder = {
        setHeader: (name, value) => headers.push(name, value),
        removeHeader: () => undefined,
    };
    const middleware = helmet({
        contentSecurityPolicy: {
            useDefaults: false,
            directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
        },
    });
    let done = false;
    middleware({}, recorder, (error) => {
        if (error !== undefined)
            throw error;
        done = true;
    });
    if (!done)
        throw new Error('helmet did not finish synchronously');
    return headers;
}
//# sourceMappingURL=security-headers.js.map