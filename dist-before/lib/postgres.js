import pg from 'pg';
import { isUnreachable, leavesConnectionUsable } from './postgres-errors.js';
export { classifyDatabaseError } from './postgres-errors.js';
export { lockSchema, migrate, quoteIdentifier } from './postgres-migrations.js';
/** A pool on `url`. Connects on first use, so a database that is away fails the query, not the start. */
export function openDatabase(options) {
    const connections = new Connections(createPool(options));
    options.lifecycle.onStop('postgres pool', () => connections.end());
    return {
        query: (sql, values, name) => connections.use((client) => run(client, sql, values, name)),
        transaction: (work) => connections.use((client) => inTransaction(client, work)),
        check: async () => {
            await connections.use((client) => run(client, 'select 1'));
        },
    };
}
function createPool(options) {
    // the pool has one limit for waiting and for connecting; a busy pool may take its time, a dead server may not
    class PromptClient extends pg.Client {
        constructor(config) {
            super({ ...config, connectionTimeoutMillis: options.connectTimeoutMs });
        }
    }
    const { connectionString, runTime } = withSettings(options.url, options.settings ?? {});
    const pool = new pg.Pool({
        Client: PromptClient,
        connectionString,
        options: runTime,
        max: options.poolSize,
        application_name: options.applicationName,
        connectionTimeoutMillis: options.statementTimeoutMs,
        idleTimeoutMillis: 60_000,
        keepAlive: true,
        statement_timeout: options.statementTimeoutMs,
        // a gateway that stalls inside a transaction must not keep its locks for ever
        idle_in_transaction_session_timeout: options.statementTimeoutMs,
        // a stalled server (paused, cut off) never sends the statement timeout's error: the client gives up a little later
        query_timeout: options.statementTimeoutMs + 500,
    });
    // an idle connection that dies reports here; without a listener it would end the process
    pool.on('error', (err) => options.log.warn({ err }, 'postgres: an idle connection was lost'));
    return pool;
}
/** Settings that the URL brings in its parameter `options` come last and win; node-postgres would drop ours for them. */
function withSettings(url, settings) {
    const parsed = new URL(url);
    const own = parsed.searchParams.get('options');
    parsed.searchParams.delete('options');
    const ours = Object.entries(settings).map(([key, value]) => `-c ${key}=${value.replace(/[\\ ]/g, '\\$&')}`);
    return {
        connectionString: parsed.href,
        runTime: [...ours, ...(own === null ? [] : [own])].join(' '),
    };
}
/** Lends the pool's connections. */
class Connections {
    pool;
    waiting = new Set();
    constructor(pool) {
        this.pool = pool;
    }
    /** A refused statement gives the connection back; one that is lost or stalled is thrown away. */
    async use(work) {
        const client = await this.acquire();
        let broken;
        // a connection lost between two statements reports here and would otherwise end the process
        const onError = (error) => {
            broken = error;
        };
        client.on('error', onError);
        try {
            return await work(client);
        }
        catch (error) {
            if (!leavesConnectionUsable(error))
                broken ??= error;
            throw error;
        }
        finally {
            client.off('error', onError);
            client.release(broken);
        }
    }
    end() {
        return this.pool.end();
    }
    /** When the server cannot be reached, everybody who waits is told at once: in turn, each would wait for a time-out. */
    acquire() {
        return new Promise((resolve, reject) => {
            let over = false;
            const giveUp = (error) => {
                over = true;
                this.waiting.delete(giveUp);
                reject(error);
            };
            this.waiting.add(giveUp);
            this.pool.connect().then((client) => {
                this.waiting.delete(giveUp);
                if (over)
                    client.release();
                else
                    resolve(client);
            }, (error) => {
                giveUp(error);
                if (isUnreachable(error))
                    for (const other of this.waiting)
                        other(error);
            });
        });
    }
}
async function run(client, text, values, name) {
    const result = await client.query({
        text,
        ...(values === undefined ? {} : { values: values }),
        ...(name === undefined ? {} : { name }),
    });
    return { rows: result.rows, rowCount: result.rowCount ?? 0 };
}
async function inTransaction(client, work) {
    try {
        await client.query('begin');
        const result = await work({ query: (sql, values, name) => run(client, sql, values, name) });
        await client.query('commit');
        return result;
    }
    catch (error) {
        // a lost connection rolls back by itself, and waiting for a stalled one would double the wait
        if (leavesConnectionUsable(error))
            await client.query('rollback');
        throw error;
    }
}
//# sourceMappingURL=postgres.js.map