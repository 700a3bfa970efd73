import { HttpError } from '../../http/errors.js';
const PREFIXES = ['upstash-', 'service-'];
/** What Portico or the hosted service itself adds to a delivery, and what SDKs tell about themselves: no instructions. */
const NO_INSTRUCTION = /^(telemetry-.*|message-id|retried|signature|caller-ip|region)$/;
/** The instructions that came with a publish (`Upstash-*` and `Service-*`), by their name without prefix in lower case. */
export class Controls {
    controls = new Map();
    seen = new Set();
    /** A header wins over the query key of the same name, `Service-` over `Upstash-` (the contract's own name). */
    constructor(headers, query) {
        for (const prefix of PREFIXES) {
            for (const [name, value] of query)
                this.take(prefix, name, value);
        }
        for (const prefix of PREFIXES) {
            for (const name in headers) {
                const value = headers[name];
                if (value !== undefined)
                    this.take(prefix, name, Array.isArray(value) ? value.join(', ') : value);
            }
        }
    }
    /** Under which prefix they came; `undefined` when there was none at all. */
    get prefix() {
        if (this.seen.has('upstash-'))
            return 'Upstash';
        return this.seen.has('service-') ? 'Service' : undefined;
    }
    get names() {
        return this.controls.keys();
    }
    get(name) {
        return this.controls.get(name)?.value;
    }
    /** Names that start with `start`, cut off, and their values. */
    *below(start) {
        for (const [name, { value }] of this.controls) {
            if (name.startsWith(start))
                yield [name.slice(start.length), value];
        }
    }
    /** A 400 that names the header (or query key) as it was sent. */
    refusal(name, reason) {
        return new HttpError('invalid_request', `${this.controls.get(name)?.sentAs ?? name}: ${reason}`);
    }
    take(prefix, name, value) {
        if (!name.startsWith(prefix))
            return;
        this.seen.add(prefix);
        const bare = name.slice(prefix.length);
        if (!NO_INSTRUCTION.test(bare))
            this.controls.set(bare, { sentAs: name, value });
    }
}
//# sourceMappingURL=control-headers.js.map