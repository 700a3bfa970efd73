import { responseOf } from './callbacks.js';
import { queueStatements } from './statements.js';
/** The memory of the queue: messages, who works on them, what became of them. */
export class MessageStore {
    database;
    schema;
    leaseMs;
    graceMs;
    sql;
    /** @param graceMs after its due time a message without a claim counts as lost by RabbitMQ */
    constructor(database, schema, leaseMs, graceMs) {
        this.database = database;
        this.schema = schema;
        this.leaseMs = leaseMs;
        this.graceMs = graceMs;
        this.sql = queueStatements(schema);
    }
    async insert(message) {
        await this.insertWith(this.database, message);
    }
    async claim({ id, attempt }) {
        const claimed = await this.run(this.database, 'claim', [id, attempt, this.leaseMs]);
        const [row] = claimed.rows;
        if (row !== undefined)
            return { kind: 'claimed', message: messageOf(row) };
        const standing = await this.run(this.database, 'standing', [id]);
        const [now] = standing.rows;
        if (now === undefined || now.finished)
            return { kind: 'over' };
        if (now.attempt !== attempt)
            return { kind: 'stale', attempt: now.attempt, waitMs: now.wait_ms };
        return { kind: 'busy', waitMs: now.wait_ms };
    }
    async renew(held) {
        const ids = held.map(({ id }) => id);
        await this.run(this.database, 'renew', [ids, held.map(({ claims }) => claims), this.leaseMs]);
    }
    /** Gives a claim back without an outcome. */
    async release({ id, claims }) {
        await this.run(this.database, 'release', [id, claims]);
    }
    /**
     * Writes an outcome, all of it or nothing.
     * @returns false when somebody else has claimed the message meanwhile: then nothing was written
     */
    async conclude(conclusion) {
        const { decision, callbacks } = conclusion;
        if (callbacks.length === 0 && decision.kind !== 'dead')
            return this.writeState(this.database, conclusion);
        return this.database.transaction(async (connection) => {
            if (!(await this.writeState(connection, conclusion)))
                return false;
            if (conclusion.dlqId !== undefined)
                await this.bury(connection, conclusion, conclusion.dlqId);
            for (const callback of callbacks)
                await this.insertWith(connection, callback);
            return true;
        });
    }
    /** Cancels messages whose delivery has not begun. @returns the ids of those that were cancelled */
    async cancel(ids) {
        return (await this.run(this.database, 'cancel', [ids])).rows.map(({ id }) => id);
    }
    /** Tokens of at most `limit` messages that are overdue and in nobody's hands; none while another gateway sweeps. */
    async sweep(limit) {
        return this.database.transaction(async (connection) => {
            const lock = await this.run(connection, 'sweepLock', [
                `portico sweep ${this.schema}`,
            ]);
            if (lock.rows[0]?.taken !== true)
                return [];
            const lost = await this.run(connection, 'sweep', [this.graceMs, limit]);
            return lost.rows.map(({ id, attempt }) => ({ id, attempt }));
        });
    }
    /** Removes messages that ended long enough ago. @returns how many */
    async purge(ages, limit) {
        return (await this.run(this.database, 'purge', [ages.deliveredMs, ages.deadMs, limit])).rowCount;
    }
    async writeState(connection, { message, decision }) {
        const { id, claims } = message;
        const written = decision.kind === 'retry'
            ? await this.run(connection, 'retry', [id, claims, decision.delayMs, this.graceMs])
            : await this.run(connection, decision.kind === 'delivered' ? 'deliver' : 'fail', [id, claims]);
        return written.rowCount > 0;
    }
    async bury(connection, { message, result }, dlqId) {
        const { status, headers, body } = responseOf(result);
        const error = result.kind === 'failure' ? result.reason : null;
        await this.run(connection, 'bury', [dlqId, message.id, error, status, JSON.stringify(headers), body]);
    }
    insertWith(connection, message) {
        const { id, prefix, url, method, headers, body, maxRetries, timeoutMs } = message;
        const { notBefore, createdAt, callback, failureCallback, delayMs } = message;
        return this.run(connection, 'insert', [
            ...[
                id,
                prefix,
                url,
                method,
                JSON.stringify(headers),
                body,
                maxRetries,
                timeoutMs,
                notBefore,
                createdAt,
            ],
            ...[jsonOrNull(callback), jsonOrNull(failureCallback), delayMs, this.graceMs],
        ]);
    }
    run(connection, statement, values) {
        return connection.query(this.sql[statement], values, `queue_${statement}`);
    }
}
function jsonOrNull(value) {
    return value === null ? null : JSON.stringify(value);
}
function messageOf(row) {
    return {
        id: row.id,
        prefix: row.prefix,
        url: row.url,
        method: row.method,
        headers: row.headers,
        body: row.body,
        maxRetries: row.max_retries,
        timeoutMs: row.timeout_ms,
        notBefore: Number(row.not_before),
        createdAt: Number(row.created_at),
        callback: row.callback,
        failureCallback: row.failure_callback,
        attempt: row.attempt,
        claims: row.claims,
    };
}
//# sourceMappingURL=store.js.map