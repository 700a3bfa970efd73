// Positions in an entry of the reply of COMMAND: https://redis.io/docs/latest/commands/command/
const NAME = 0;
const FLAGS = 2;
const CATEGORIES = 6;
const SUBCOMMANDS = 9;
/** Reads the reply of `COMMAND`; what has another shape, an error reply included, makes no entries. */
export function readCommandTable(reply) {
    const table = new Map();
    for (const entry of items(reply)) {
        const fields = items(entry);
        const name = text(fields[NAME]).toLowerCase();
        // a subcommand is listed as "container|name"
        table.set(name.slice(name.indexOf('|') + 1), {
            flags: words(fields[FLAGS]),
            categories: words(fields[CATEGORIES]),
            subcommands: readCommandTable(fields[SUBCOMMANDS]),
        });
    }
    return table;
}
function items(value) {
    return Array.isArray(value) ? value : [];
}
function words(value) {
    return new Set(items(value).map(text));
}
function text(value) {
    return value instanceof Buffer ? value.toString('latin1') : '';
}
//# sourceMappingURL=command-table.js.map