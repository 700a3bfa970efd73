const definitionOf = (schema) => schema.def;
/** Peels default, nullable, optional and pipes off a schema and collects what they say; what stands outside wins. */
function unwrap(schema) {
    let current = schema;
    let byDefault;
    let meta = {};
    for (;;) {
        meta = { ...current.meta(), ...meta };
        const definition = definitionOf(current);
        if (byDefault === undefined && 'defaultValue' in definition)
            byDefault = definition.defaultValue;
        const inner = definition.innerType ?? definition.in;
        if (inner === undefined)
            return { schema: current, byDefault, meta };
        current = inner;
    }
}
/** Every key of a configuration schema, in the order of the schema. */
export function settingLeaves(schema, path = []) {
    const { schema: bare, byDefault, meta } = unwrap(schema);
    const definition = definitionOf(bare);
    if (definition.type === 'object') {
        return Object.entries(definition.shape ?? {}).flatMap(([key, value]) => settingLeaves(value, [...path, key]));
    }
    if (definition.type === 'array' && definition.element !== undefined) {
        const element = definitionOf(unwrap(definition.element).schema);
        if (element.type === 'object')
            return settingLeaves(definition.element, [...path, '#']);
    }
    return [
        {
            path,
            type: leafType(definition.type),
            description: meta.description ?? '',
            byDefault,
            secret: meta.secret === true,
            env: meta.env,
        },
    ];
}
function leafType(type) {
    if (type === 'string' || type === 'enum' || type === 'literal')
        return 'string';
    if (type === 'number' || type === 'int')
        return 'number';
    if (type === 'boolean')
        return 'boolean';
    return type === 'array' ? 'list' : 'other';
}
/** The keys that an object of the schema at `path` may hold; for suggestions. */
export function keysAt(schema, path) {
    let current = unwrap(schema).schema;
    for (const step of path) {
        const definition = definitionOf(current);
        const next = definition.type === 'array' ? definition.element : definition.shape?.[String(step)];
        if (next === undefined)
            return [];
        current = unwrap(next).schema;
    }
    return Object.keys(definitionOf(current).shape ?? {});
}
/** `kv.databases[0].token` */
export function keyText(path) {
    return path.reduce((text, step) => typeof step === 'number' ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${String(step)}`, '');
}
/** The one of `candidates` that is at most two edits from `word`, if any. */
export function nearest(word, candidates) {
    const scored = candidates.map((candidate) => ({ candidate, edits: editDistance(word, candidate) }));
    const best = scored.sort((a, b) => a.edits - b.edits)[0];
    return best !== undefined && best.edits <= Math.max(2, Math.floor(word.length / 3))
        ? best.candidate
        : undefined;
}
function editDistance(a, b) {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        for (let j = 1; j <= b.length; j++) {
            const substitution = row[j - 1] + (a[i - 1]?.toLowerCase() === b[j - 1]?.toLowerCase() ? 0 : 1);
            next[j] = Math.min(substitution, row[j] + 1, next[j - 1] + 1);
        }
        row = next;
    }
    return row[b.length];
}
//# sourceMappingURL=settings-tree.js.map