/** Keeps the claims of messages that are being delivered alive: all of them with one statement, three times a lease. */
export class LeaseKeeper {
    renew;
    log;
    held = new Set();
    timer;
    renewing = false;
    constructor(renew, leaseMs, log) {
        this.renew = renew;
        this.log = log;
        this.timer = setInterval(() => void this.renewAll(), leaseMs / 3);
    }
    hold(message) {
        this.held.add(message);
    }
    letGo(message) {
        this.held.delete(message);
    }
    stop() {
        clearInterval(this.timer);
    }
    async renewAll() {
        if (this.held.size === 0 || this.renewing)
            return;
        this.renewing = true;
        try {
            await this.renew([...this.held]);
        }
        catch (err) {
            this.log.warn({ err, held: this.held.size }, 'queue: leases could not be renewed');
        }
        finally {
            this.renewing = false;
        }
    }
}
//# sourceMappingURL=lease-keeper.js.map