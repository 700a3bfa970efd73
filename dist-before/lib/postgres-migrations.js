/**
 * Holds back every other gateway that wants to change `schema`, until the transaction of `connection` ends.
 */
export async function lockSchema(connection, schema) {
    await connection.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`portico ${schema}`]);
}
/**
 * Brings Postgres schema `schema` to the newest version: creates it and its table `migrations` when missing and runs
 * what has not run yet, in order, all in one transaction under an advisory lock, so several gateways may start at once.
 * @throws when the database is newer than this program knows
 */
export async function migrate(database, schema, migrations) {
    const quoted = quoteIdentifier(schema);
    await database.transaction(async (connection) => {
        await lockSchema(connection, schema);
        const existing = await connection.query('select 1 from pg_namespace where nspname = $1', [schema]);
        if (existing.rowCount === 0)
            await connection.query(`create schema ${quoted}`);
        await connection.query(`create table if not exists ${quoted}.migrations (id int primary key, name text not null, at timestamptz not null default now())`);
        const done = await connection.query(`select id from ${quoted}.migrations order by id`);
        const newest = done.rows.at(-1)?.id ?? 0;
        const known = migrations.at(-1)?.id ?? 0;
        if (newest > known) {
            throw new Error(`schema ${schema} is at version ${newest}; this program knows only up to ${known}`);
        }
        for (const migration of migrations) {
            if (migration.id <= newest)
                continue;
            await migration.up(connection);
            await connection.query(`insert into ${quoted}.migrations (id, name) values ($1, $2)`, [
                migration.id,
                migration.name,
            ]);
        }
    });
}
/** An identifier as it may stand in SQL text, whatever characters it holds. */
export function quoteIdentifier(name) {
    return `"${name.replaceAll('"', '""')}"`;
}
//# sourceMappingURL=postgres-migrations.js.map