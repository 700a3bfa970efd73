import { HttpError } from '../../http/errors.js';
import { EF_SEARCH } from './client.js';
import { packMany, packOne } from './components.js';
import { translateError } from './errors.js';
import { checkBytes, metadataText } from './metadata.js';
import { comparison } from './score.js';
import { statementsOf, } from './statements.js';
/** ef_search is twice topK where that is more than every connection has; pgvector takes no more than this. */
const MAX_EF_SEARCH = 1_000;
/** One index whose tables are there. */
export class VectorIndex {
    database;
    tables;
    settings;
    statements;
    rules;
    constructor(database, schema, tables, settings) {
        this.database = database;
        this.tables = tables;
        this.settings = settings;
        const compare = comparison(settings.similarity, settings.dimension);
        this.rules = { ...compare, dimension: settings.dimension };
        this.statements = statementsOf(schema, tables, compare);
    }
    /**
     * Stores every record or none; one that exists is replaced as a whole. Of several with one id the last wins.
     * Resolves when they are committed, so that a query that starts then sees them.
     */
    async upsert(namespace, records) {
        if (records.length === 0)
            return;
        const columns = this.pack(records);
        const { lockNamespace, createNamespace, upsert } = this.statements;
        await this.translated(() => this.database.transaction(async (connection) => {
            const lock = () => connection.query(lockNamespace.text, [namespace], lockNamespace.name);
            let locked = (await lock()).rows[0];
            if (locked === undefined) {
                await connection.query(createNamespace.text, [namespace], createNamespace.name);
                locked = (await lock()).rows[0];
            }
            if (locked === undefined)
                throw new HttpError('conflict', 'The namespace was deleted meanwhile.');
            await connection.query(upsert.text, [locked.id, locked.next_row, ...columns], upsert.name);
        }));
    }
    /** The nearest records, best score first, as the JSON text of an array. */
    async query(namespace, body) {
        const { maxTopK } = this.settings;
        if (body.topK > maxTopK) {
            throw new HttpError('unprocessable', `body.topK: ${body.topK}, more than the limit of ${maxTopK}`);
        }
        const vector = packOne(body.vector, this.rules, 'body.vector');
        const rows = await this.translated(() => this.nearest(vector, namespace, body));
        return `[${rows.map(entryText).join(',')}]`;
    }
    async info() {
        const { counts, size } = this.statements;
        const [spaces, bytes] = await this.translated(() => Promise.all([
            this.database.query(counts.text, [], counts.name),
            this.database.query(size.text, [], size.name),
        ]));
        const { dimension, similarity } = this.settings;
        const dense = { dimension, similarityFunction: similarity };
        const perSpace = spaces.rows.map(({ name, record_count }) => [name, Number(record_count)]);
        return {
            vectorCount: perSpace.reduce((sum, [, count]) => sum + count, 0),
            // an upsert is answered when its records can be found: none is ever accepted and not ready
            pendingVectorCount: 0,
            indexSize: Number(bytes.rows[0]?.bytes ?? 0),
            ...dense,
            indexType: 'DENSE',
            denseIndex: { ...dense, embeddingModel: '' },
            namespaces: Object.fromEntries(perSpace.map(([name, vectorCount]) => [name, { vectorCount, pendingVectorCount: 0 }])),
        };
    }
    /** Parameters of the upsert from its third on. @throws HttpError for the first record that cannot be stored */
    pack(records) {
        const { maxMetadataBytes, maxDataBytes } = this.settings;
        const vectors = records.map(({ vector }, i) => {
            if (vector === null || vector === undefined)
                throw new HttpError('unprocessable', `body.${i}.vector: every record of this index needs a vector`);
            return vector;
        });
        const metadata = records.map((record, i) => record.metadata === null || record.metadata === undefined
            ? null
            : metadataText(record.metadata, maxMetadataBytes, `body.${i}.metadata`));
        const data = records.map((record, i) => {
            if (record.data === null || record.data === undefined)
                return null;
            checkBytes(record.data, maxDataBytes, `body.${i}.data`);
            return record.data;
        });
        const keep = [...new Map(records.map(({ id }, i) => [id, i])).values()].sort((a, b) => a - b);
        const packed = packMany(vectors, keep, this.rules, this.tables.vectorType, (i) => `body.${i}.vector`);
        const kept = (column) => keep.map((i) => column[i]);
        return [kept(records.map(({ id }) => id)), packed, kept(metadata), kept(data)];
    }
    async nearest(vector, namespace, body) {
        const { topK } = body;
        const included = {
            vectors: body.includeVectors,
            metadata: body.includeMetadata,
            data: body.includeData,
        };
        const ef = Math.min(2 * topK, MAX_EF_SEARCH);
        const { nearest, nearestTuned, nearestExact } = this.statements;
        const rows = await (ef > EF_SEARCH
            ? this.rows(nearestTuned(included), [vector, namespace, topK, String(ef)])
            : this.rows(nearest(included), [vector, namespace, topK]));
        // HNSW gives up after a number of rows of other namespaces; topK is filled wherever the namespace can
        if (rows.length >= topK || rows[0]?.exact === true)
            return rows;
        return this.rows(nearestExact(included), [vector, namespace, topK]);
    }
    async rows(statement, values) {
        return (await this.database.query(statement.text, values, statement.name)).rows;
    }
    async translated(work) {
        try {
            return await work();
        }
        catch (error) {
            throw translateError(error);
        }
    }
}
function entryText(row) {
    let text = `{"id":${JSON.stringify(row.id)},"score":${row.score}`;
    if (typeof row.vector === 'string')
        text += `,"vector":${row.vector}`;
    if (typeof row.metadata === 'string')
        text += `,"metadata":${row.metadata}`;
    if (typeof row.data === 'string')
        text += `,"data":${JSON.stringify(row.data)}`;
    return `${text}}`;
}
//# sourceMappingURL=vector-index.js.map