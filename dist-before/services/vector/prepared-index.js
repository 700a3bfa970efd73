import { HttpError } from '../../http/errors.js';
import { keepTrying } from '../../lib/keep-trying.js';
import { migrate } from '../../lib/postgres.js';
import { translateError } from './errors.js';
import { ensureIndexTables } from './index-tables.js';
import { migrations } from './migrations.js';
import { VectorIndex } from './vector-index.js';
/** Oldest pgvector without a known way to damage an HNSW index (pgvector's changelog). */
const SOUND_PGVECTOR = [0, 8, 4];
/** How long the first requests wait for the tables before they are told 503, in ms. */
const START_WAIT_MS = 1_500;
/** An index that may not be usable yet: its tables are looked for, or made, in the background until that succeeds. */
export class PreparedIndex {
    options;
    index;
    progress;
    constructor(options) {
        this.options = options;
        const { settings, log, lifecycle } = options;
        this.progress = keepTrying(() => this.prepare(), {
            name: `vector index ${settings.name}`,
            log,
            lifecycle,
        });
    }
    /** @throws HttpError 503 with the reason while the index cannot be used */
    async ready() {
        if (this.index === undefined && this.progress.error === undefined)
            await this.firstTry();
        if (this.index !== undefined)
            return this.index;
        throw this.progress.error === undefined
            ? new HttpError('backend_unavailable', 'Postgres is not available.')
            : translateError(this.progress.error);
    }
    /** Resolves when Postgres answers and the index can be used. */
    async check() {
        if (!this.progress.done && this.progress.error !== undefined)
            throw this.progress.error;
        await this.options.database.check();
        await this.ready();
    }
    async firstTry() {
        let timer;
        const late = new Promise((resolve) => {
            timer = setTimeout(resolve, START_WAIT_MS);
        });
        await Promise.race([this.progress.success, late]);
        clearTimeout(timer);
    }
    async prepare() {
        const { database, schema, settings, log } = this.options;
        try {
            await migrate(database, schema, migrations(schema));
            const tables = await ensureIndexTables(database, schema, settings);
            if (isOlder(tables.pgvectorVersion, SOUND_PGVECTOR)) {
                log.warn({ version: tables.pgvectorVersion }, `pgvector is older than ${SOUND_PGVECTOR.join('.')}, which mends faults of HNSW indexes`);
            }
            this.index = new VectorIndex(database, schema, tables, settings);
        }
        catch (error) {
            throw translateError(error);
        }
    }
}
function isOlder(version, than) {
    const parts = version.split('.').map(Number);
    const at = than.findIndex((part, i) => (parts[i] ?? 0) !== part);
    return at >= 0 && (parts[at] ?? 0) < than[at];
}
//# sourceMappingURL=prepared-index.js.map