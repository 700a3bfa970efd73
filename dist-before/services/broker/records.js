/** Header lists are objects in kafkajs: the order of names that look like numbers is lost, repeated names keep all values. */
export function toKafkaHeaders(headers) {
    // without a prototype: a header may be called `__proto__`
    const named = Object.create(null);
    for (const { key, value } of headers) {
        const before = named[key];
        if (before === undefined)
            named[key] = value;
        else if (Array.isArray(before))
            before.push(value);
        else
            named[key] = [before, value];
    }
    return named;
}
/** A record as the contract shows it: absent key, value and header values read as "", bytes as UTF-8. */
export function toMessage(topic, partition, record) {
    return {
        topic,
        partition,
        offset: Number(record.offset),
        timestamp: Number(record.timestamp),
        key: text(record.key),
        value: text(record.value),
        headers: headerList(record.headers),
    };
}
/** Bytes of a record that count towards a reply's limit. */
export function sizeOf(record) {
    return (record.key?.length ?? 0) + (record.value?.length ?? 0);
}
function headerList(headers) {
    const list = [];
    if (headers === undefined)
        return list;
    for (const key of Object.keys(headers)) {
        const value = headers[key];
        if (Array.isArray(value))
            for (const one of value)
                list.push({ key, value: text(one) });
        else
            list.push({ key, value: text(value) });
    }
    return list;
}
function text(value) {
    if (value === null || value === undefined)
        return '';
    return typeof value === 'string' ? value : value.toString('utf8');
}
//# sourceMappingURL=records.js.map