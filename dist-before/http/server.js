import { createServer } from 'node:http';
import { ERRORS } from './errors.js';
/** A new request on a kept connection may already be on its way when a stop begins: idle ones are closed only after so many ms. */
const IDLE_GRACE_MS = 100;
const DRAIN_EVERY_MS = 50;
/** Serves `app` on `host:port` (0: a free one). @throws EADDRINUSE, EACCES and the like, with the address in the message */
export async function listen(app, host, port, core) {
    const { settings } = core;
    const server = createServer({
        IncomingMessage: app.IncomingMessage,
        ServerResponse: app.ServerResponse,
        maxHeaderSize: settings.maxHeaderBytes,
        requestTimeout: settings.requestTimeoutMs,
        headersTimeout: Math.min(60_000, settings.requestTimeoutMs),
        keepAliveTimeout: settings.keepAliveTimeoutMs,
        connectionsCheckingInterval: 1_000,
        noDelay: true,
    }, app.handle);
    server.on('clientError', (error, socket) => {
        void core.inputEnded(socket).then(() => answerClientError(error, socket));
    });
    // `Expect: 100-continue` is granted only when a handler reads the body, so a wrong token costs no upload
    server.on('checkContinue', (request, response) => {
        request.once('resume', () => {
            if (!response.headersSent)
                response.writeContinue();
        });
        app.handle(request, response);
    });
    await new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
            server.off('error', reject);
            resolve();
        });
    });
    return { port: server.address().port, drain: (capMs) => drain(server, capMs) };
}
async function drain(server, capMs) {
    const startedAt = performance.now();
    await new Promise((resolve) => {
        const sweep = setInterval(() => {
            const elapsed = performance.now() - startedAt;
            if (elapsed >= IDLE_GRACE_MS)
                server.closeIdleConnections();
            if (elapsed >= capMs)
                server.closeAllConnections();
        }, DRAIN_EVERY_MS);
        server.close(() => {
            clearInterval(sweep);
            resolve();
        });
    });
}
/**
 * What Node refuses before there is a request still gets a JSON reply, in the shape without a contract; after the
 * replies to requests that came before it on the same connection there is none, only the end.
 */
function answerClientError(error, socket) {
    if (!socket.writable || socket.bytesWritten > 0 || error.code === 'ECONNRESET') {
        socket.destroy();
        return;
    }
    const [status, message] = ERRORS[codeOf(error)];
    const body = JSON.stringify({ error: message, status });
    socket.end(`HTTP/1.1 ${status} ${REASONS[status] ?? 'Bad Request'}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
}
const REASONS = {
    400: 'Bad Request',
    408: 'Request Timeout',
    431: 'Request Header Fields Too Large',
};
function codeOf(error) {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT')
        return 'request_timeout';
    if (error.code === 'HPE_HEADER_OVERFLOW')
        return 'headers_too_large';
    return 'invalid_request';
}
//# sourceMappingURL=server.js.map