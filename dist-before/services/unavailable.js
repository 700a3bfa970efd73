import { z } from 'zod';
import { HttpError } from '../http/errors.js';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** Seconds a client should wait: nothing but a new start of the gateway can change the state. */
const RETRY_AFTER_S = 60;
/** A service whose backend cannot be had still checks credentials and answers every request with 503 and the reason. */
export function unavailableInstances(service, config, reason) {
    const refusal = () => new HttpError('backend_unavailable', `This service is not available: ${reason}`, {
        retryAfter: RETRY_AFTER_S,
    });
    const everything = {
        kind: 'raw',
        prefix: true,
        operationId: `${service.name}.unavailable`,
        summary: 'Answers 503.',
        methods: METHODS,
        path: '/',
        reply: z.never(),
        handle: () => Promise.reject(refusal()),
    };
    return service.mounts(config).map((mount) => ({
        ...mount,
        routes: [everything],
        formatError: service.formatError,
        bodyLimit: 64 * 1024 * 1024,
        timeoutMs: 10_000,
        backends: service.backends(config).map(({ name }) => ({
            name,
            check: () => Promise.reject(new HttpError('backend_unavailable', reason)),
        })),
    }));
}
//# sourceMappingURL=unavailable.js.map