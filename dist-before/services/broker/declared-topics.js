/** `name` or `name:partitions` */
export function parseDeclaredTopic(text) {
    const [name = '', partitions] = text.split(':');
    return { name, partitions: partitions === undefined ? -1 : Number(partitions) };
}
/**
 * Makes the declared topics that do not exist; one that does is left as it is, whatever its partitions.
 * @param create makes topics; one that another gateway has made meanwhile is no error
 */
export async function makeDeclaredTopics(cluster, declared, create) {
    if (declared.length === 0)
        return;
    const names = declared.map(({ name }) => name);
    const existing = await cluster.topics(names, true);
    const missing = declared.filter(({ name }) => !existing.has(name));
    if (missing.length === 0)
        return;
    await create(missing);
    await cluster.topics(names, true);
}
//# sourceMappingURL=declared-topics.js.map