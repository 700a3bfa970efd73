import { notConnected, outcomeUnknown, tooMuchUnsent } from './errors.js';
import { RespDecoder } from './resp-decoder.js';
/** What may wait in this process because Redis does not read it, in bytes. */
const UNSENT_LIMIT = 256 * 1024 * 1024;
const WATCH_MS = 500;
/** Texts are joined up to so many characters a write: far below what a string may hold, far above a usual tick. */
const JOIN_LENGTH = 4 * 1024 * 1024;
/**
 * RESP2 over one connected, logged-in socket that all requests share. Whatever is submitted while the event loop
 * reads its sockets goes out in one write; replies come back in the same order. Nothing is ever sent twice.
 */
export class Wire {
    socket;
    stallMs;
    first;
    last;
    firstUnsent;
    unsent = [];
    closed = false;
    heard = false;
    silentMs = 0;
    watch;
    /** @param stallMs when replies are due and not one byte arrives for so long, the connection is given up */
    constructor(socket, stallMs) {
        this.socket = socket;
        this.stallMs = stallMs;
        const decoder = new RespDecoder((reply) => this.receive(reply));
        socket.on('data', (chunk) => {
            this.heard = true;
            try {
                decoder.write(chunk);
            }
            catch (error) {
                socket.destroy(error);
            }
        });
        socket.once('close', () => this.close());
        this.watch = setInterval(() => this.checkProgress(), WATCH_MS);
        this.watch.unref();
    }
    /**
     * Sends `payload`, which holds `expected` commands, and resolves to what `finish` makes of their replies.
     * @throws HttpError `backend_unavailable` or `overloaded` when nothing was sent, `outcome_unknown` when the connection broke later
     */
    submit(payload, expected, finish) {
        if (this.closed)
            return Promise.reject(notConnected());
        if (this.socket.writableLength > UNSENT_LIMIT)
            return Promise.reject(tooMuchUnsent());
        return new Promise((resolve, reject) => {
            const land = (replies) => {
                try {
                    resolve(finish(replies));
                }
                catch (error) {
                    reject(error);
                }
            };
            this.append({ expected, replies: [], land, lose: reject, next: undefined }, payload);
        });
    }
    append(flight, payload) {
        if (this.last === undefined)
            this.first = flight;
        else
            this.last.next = flight;
        this.last = flight;
        if (this.firstUnsent === undefined) {
            this.firstUnsent = flight;
            setImmediate(() => this.flush());
        }
        this.unsent.push(payload);
    }
    flush() {
        if (this.closed)
            return;
        const payloads = this.unsent;
        this.unsent = [];
        this.firstUnsent = undefined;
        let text = '';
        const { socket } = this;
        socket.cork();
        for (const piece of payloads.flat()) {
            const joins = typeof piece === 'string' && text.length + piece.length <= JOIN_LENGTH;
            if (joins) {
                text += piece;
                continue;
            }
            if (text !== '')
                socket.write(text);
            text = '';
            socket.write(piece);
        }
        if (text !== '')
            socket.write(text);
        socket.uncork();
    }
    receive(reply) {
        const flight = this.first;
        if (flight === undefined)
            throw new Error('Redis sent a reply that nothing waits for');
        flight.replies.push(reply);
        if (flight.replies.length < flight.expected)
            return;
        this.first = flight.next;
        if (this.first === undefined)
            this.last = undefined;
        flight.land(flight.replies);
    }
    checkProgress() {
        this.silentMs = this.heard || this.first === undefined ? 0 : this.silentMs + WATCH_MS;
        this.heard = false;
        if (this.silentMs >= this.stallMs)
            this.socket.destroy(new Error(`no reply from Redis for ${this.stallMs} ms`));
    }
    close() {
        this.closed = true;
        clearInterval(this.watch);
        const lost = outcomeUnknown();
        const unsent = notConnected();
        let error = lost;
        for (let flight = this.first; flight !== undefined; flight = flight.next) {
            if (flight === this.firstUnsent)
                error = unsent;
            flight.lose(error);
        }
        this.first = undefined;
        this.last = undefined;
        this.firstUnsent = undefined;
        this.unsent = [];
    }
}
//# sourceMappingURL=wire.js.map