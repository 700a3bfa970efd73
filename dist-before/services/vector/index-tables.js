import { HttpError } from '../../http/errors.js';
import { lockSchema, quoteIdentifier } from '../../lib/postgres.js';
import { comparison } from './score.js';
/** A page of Postgres holds 8 kB: up to here a vector fits beside the rest of its row. */
const MAX_PLAIN_DIMENSION = 1_536;
/**
 * Finds the tables of index `settings.name`, or makes them when the name is new. Changes nothing that exists.
 * @throws HttpError with the reason, where what exists does not fit the configuration
 */
export async function ensureIndexTables(database, schema, settings) {
    const s = quoteIdentifier(schema);
    return database.transaction(async (connection) => {
        await lockSchema(connection, schema);
        const extension = await findExtension(connection);
        const found = await connection.query(`select id, dimension, similarity from ${s}.indexes where name = $1`, [settings.name]);
        const row = found.rows[0];
        const indexId = row?.id ?? (await createIndex(connection, s, settings));
        const tables = { ...extension, indexId, records: recordsTable(s, indexId) };
        if (row !== undefined)
            await checkIndex(connection, tables.records, row, settings);
        return tables;
    });
}
function recordsTable(s, indexId) {
    return `${s}.records_${indexId}`;
}
async function findExtension(connection) {
    const result = await connection.query("select to_regtype('vector')::oid as type, extversion as version from pg_extension where extname = 'vector'");
    const row = result.rows[0];
    if (row === undefined)
        throw unusable('the database has no extension "vector"');
    if (row.type === null)
        throw unusable('the extension "vector" lies outside the search path of this role');
    const [major = 0, minor = 0] = row.version.split('.').map(Number);
    if (major === 0 && minor < 8)
        throw unusable(`pgvector ${row.version} is too old: 0.8.0 or newer is needed`);
    return { vectorType: row.type, pgvectorVersion: row.version };
}
function unusable(reason) {
    return new HttpError('backend_unavailable', reason);
}
async function createIndex(connection, s, settings) {
    const { name, dimension, similarity } = settings;
    const inserted = await connection.query(`insert into ${s}.indexes (name, dimension, similarity) values ($1, $2, $3) returning id`, [name, dimension, similarity]);
    const indexId = inserted.rows[0].id;
    const records = recordsTable(s, indexId);
    // metadata is never null, so that a filter's negation can be true on a record without any
    await connection.query(`create table ${records} (
    namespace_id int not null,
    row bigint not null,
    id text collate "C" not null,
    vec vector(${dimension}) not null,
    metadata jsonb not null default '{}',
    has_metadata boolean not null,
    data text,
    primary key (namespace_id, id),
    unique (namespace_id, row))`);
    // out of the row, vectors are read slowly and their cost is hidden from the planner
    if (dimension <= MAX_PLAIN_DIMENSION)
        await connection.query(`alter table ${records} alter column vec set storage plain`);
    await connection.query(`create index on ${records} using hnsw (${comparison(similarity, dimension).indexed('vec')})`);
    await connection.query(`insert into ${s}.namespaces (index_id, name) values ($1, '')`, [indexId]);
    return indexId;
}
async function checkIndex(connection, records, existing, { name, dimension, similarity }) {
    const column = await connection.query("select atttypmod as dimension from pg_attribute where attrelid = to_regclass($1) and attname = 'vec' and not attisdropped", [records]);
    const actual = column.rows[0]?.dimension;
    if (actual === undefined)
        throw unusable(`the table ${records} of index ${name} is missing`);
    const differing = [
        ...(actual === dimension ? [] : [`dimension ${actual}, not ${dimension}`]),
        ...(existing.similarity === similarity ? [] : [`similarity ${existing.similarity}, not ${similarity}`]),
    ];
    if (differing.length > 0) {
        throw unusable(`the existing index ${name} has ${differing.join(' and ')} as the configuration says; change the configuration, or give the new index another name`);
    }
}
//# sourceMappingURL=index-tables.js.map