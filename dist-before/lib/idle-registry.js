/**
 * Values made on first use and closed when idle. Making one is shared by all who ask meanwhile; one that could not be
 * made leaves nothing behind.
 */
export class IdleRegistry {
    options;
    entries = new Map();
    closing = new Map();
    stopped = false;
    constructor(options) {
        this.options = options;
    }
    /** Values there are or that are being made. */
    get size() {
        return this.entries.size;
    }
    /** Those that are made. */
    values() {
        return [...this.entries.values()].flatMap(({ ready }) => (ready === undefined ? [] : [ready]));
    }
    has(key) {
        return this.entries.has(key);
    }
    /** The value of `key`, made by `create` when there is none; held until released. @throws what `create` throws */
    async hold(key, create) {
        for (let ending = this.closing.get(key); ending !== undefined; ending = this.closing.get(key))
            await ending;
        if (this.stopped)
            throw new Error('the registry is closed');
        const entry = this.entries.get(key) ?? this.make(key, create);
        entry.holders++;
        clearTimeout(entry.timer);
        const value = await entry.value;
        let released = false;
        return {
            value,
            release: () => {
                if (released)
                    return;
                released = true;
                if (--entry.holders === 0 && this.entries.get(key) === entry)
                    this.expireLater(key, entry);
            },
        };
    }
    /** Closes a value whether it is held or not. Resolves to false when there is none. */
    async close(key) {
        const entry = this.entries.get(key);
        if (entry === undefined)
            return false;
        await this.end(key, entry, 'asked');
        return true;
    }
    /** Closes everything; nothing can be made any more. */
    async closeAll() {
        this.stopped = true;
        for (const [key, entry] of [...this.entries])
            void this.end(key, entry, 'stop');
        await Promise.all(this.closing.values());
    }
    make(key, create) {
        const entry = { value: create(), ready: undefined, holders: 0, timer: undefined };
        this.entries.set(key, entry);
        entry.value.then((value) => {
            entry.ready = value;
        }, () => {
            if (this.entries.get(key) === entry)
                this.entries.delete(key);
        });
        return entry;
    }
    expireLater(key, entry) {
        entry.timer = setTimeout(() => void this.end(key, entry, 'idle'), this.options.idleMs);
        entry.timer.unref();
    }
    end(key, entry, reason) {
        clearTimeout(entry.timer);
        this.entries.delete(key);
        const ending = entry.value
            .then((value) => this.options.close(value, reason))
            .catch(() => { })
            .finally(() => {
            if (this.closing.get(key) === ending)
                this.closing.delete(key);
        });
        this.closing.set(key, ending);
        return ending;
    }
}
//# sourceMappingURL=idle-registry.js.map