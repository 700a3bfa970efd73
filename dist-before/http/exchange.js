import { discardBody } from './body.js';
import { HttpError } from './errors.js';
const NOBODY = { name: 'nobody', access: 'read' };
/** One request and its reply: id, deadline, abort signal, and the one place from which anything is sent. */
export class Exchange {
    core;
    request;
    response;
    requestId;
    principal = NOBODY;
    /** Label of the request in metrics; the route's operation id once that is known. */
    operationId = 'unrouted';
    /** Answers an error in the shape of the contract that the request belongs to. */
    onError;
    startedAt;
    deadline = Number.POSITIVE_INFINITY;
    readingSince = 0;
    controller;
    ended;
    answered = false;
    over;
    overListeners;
    constructor(core, request, response, sendError) {
        this.core = core;
        this.request = request;
        this.response = response;
        this.requestId = core.nextRequestId(request.headers['x-request-id']);
        this.startedAt = core.now();
        this.onError = (error) => sendError(this, error);
        core.opened(this);
        response.on('close', () => this.closed());
    }
    /** Made on first use: most requests end before anything would listen. */
    get signal() {
        if (this.controller === undefined) {
            this.controller = new AbortController();
            if (this.ended !== undefined)
                this.controller.abort(this.ended);
        }
        return this.controller.signal;
    }
    get log() {
        return this.core.log;
    }
    onOver(listener) {
        if (this.over !== undefined)
            listener(this.over);
        else if (this.overListeners === undefined)
            this.overListeners = [listener];
        else
            this.overListeners.push(listener);
    }
    isOn(socket) {
        return this.request.socket === socket;
    }
    /** Its connection can bring no further bytes: a body that is not complete never will be. */
    inputEnded() {
        if (this.request.complete)
            return;
        this.fail(new HttpError('invalid_request', 'The body is malformed.', { headers: { Connection: 'close' } }));
    }
    /** True once a reply went out or the client is gone: nothing more can be sent. */
    get isOver() {
        return this.answered || this.ended !== undefined;
    }
    /** From now the request must end within `timeoutMs`. */
    limitTo(timeoutMs) {
        this.deadline = this.core.now() + timeoutMs;
    }
    /** The body is being read; every chunk calls it again, `bodyDone` ends it. */
    bodyProgress() {
        this.readingSince = this.core.now();
    }
    bodyDone() {
        this.readingSince = 0;
    }
    /** Called by the core's sweep: ends an exchange whose body stalls or whose deadline has passed. */
    expire(now, bodyIdleTimeoutMs) {
        if (this.isOver)
            return;
        if (this.readingSince > 0 && now - this.readingSince > bodyIdleTimeoutMs) {
            this.fail(new HttpError('request_timeout', 'The body did not arrive in time.', {
                headers: { Connection: 'close' },
            }));
        }
        else if (now > this.deadline) {
            this.fail(new HttpError('timeout'));
        }
    }
    /** Answers with `error` and aborts whatever still works for this request. */
    fail(error) {
        if (this.isOver)
            return;
        this.onError(error);
        this.abort(error);
    }
    /**
     * Sends a complete reply in one write; a second call does nothing.
     * @param headers name, value, name, value ... beside the constant ones, Content-Type and Content-Length
     */
    send(status, contentType, body, headers) {
        if (this.isOver)
            return;
        this.answered = true;
        const { response, request } = this;
        const list = this.core.constantHeaders.slice();
        const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
        list.push('X-Request-Id', this.requestId, 'Content-Type', contentType, 'Content-Length', String(length));
        if (headers !== undefined)
            for (const name in headers)
                list.push(name, headers[name]);
        if (this.core.stopping && headers?.Connection === undefined)
            list.push('Connection', 'close');
        response.writeHead(status, list);
        response.end(body);
        if (!request.complete)
            discardBody(request);
    }
    abort(reason) {
        this.ended ??= reason;
        this.controller?.abort(reason);
    }
    closed() {
        if (!this.answered)
            this.abort(new HttpError('client_gone'));
        const { response, request } = this;
        this.over = this.ended === undefined && response.writableFinished && request.method !== 'HEAD';
        for (const listener of this.overListeners ?? [])
            listener(this.over);
        this.core.closed(this, this.operationId, this.answered ? this.response.statusCode : 499, this.startedAt);
    }
}
//# sourceMappingURL=exchange.js.map