import { keyText } from './settings-tree.js';
/**
 * Lays environment variables over a configuration document (changed in place). A key's variable is its path in
 * capitals: `http.maxInFlight` is `PREFIX_HTTP_MAX_IN_FLIGHT`, `kv.databases[1].token` is `PREFIX_KV_DATABASES_1_TOKEN`;
 * a key with a short name (`SettingLeaf.env`) also takes that one, for the first entry of its list. An empty
 * variable counts as absent, because compose files pass unset ones as empty.
 */
export function applyEnvironment(document, leaves, environment, prefix) {
    const origins = new Map();
    const unknown = [];
    const matchers = leaves.map((leaf) => ({ leaf, pattern: variablePattern(leaf, prefix) }));
    for (const [name, text] of Object.entries(environment).sort()) {
        if (!name.startsWith(prefix) || text === undefined || text === '')
            continue;
        let known = false;
        for (const { leaf, pattern } of matchers) {
            const places = leaf.env === name ? leaf.path.filter((s) => s === '#').map(() => 0) : placesIn(name, pattern);
            if (places === undefined)
                continue;
            known = true;
            const path = withPlaces(leaf.path, places);
            setAt(document, path, parsed(text, leaf.type));
            origins.set(keyText(path), name);
        }
        if (!known)
            unknown.push(name);
    }
    return { origins, unknown };
}
/** `PORTICO_HTTP_MAX_IN_FLIGHT`; a list's place is shown as `<n>`. */
export function variableName(path, prefix) {
    return prefix + path.map((step) => (step === '#' ? '<n>' : snake(step))).join('_');
}
function snake(key) {
    return key.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase();
}
function variablePattern(leaf, prefix) {
    return new RegExp(`^${variableName(leaf.path, prefix).replaceAll('<n>', '(\\d{1,3})')}$`);
}
function placesIn(name, pattern) {
    return pattern.exec(name)?.slice(1).map(Number);
}
function withPlaces(path, places) {
    let next = 0;
    return path.map((step) => (step === '#' ? places[next++] : step));
}
function setAt(document, path, value) {
    let current = document;
    path.forEach((step, i) => {
        if (i === path.length - 1) {
            current[step] = value;
            return;
        }
        const inside = current[step];
        if (inside === null || typeof inside !== 'object')
            current[step] = typeof path[i + 1] === 'number' ? [] : {};
        current = current[step];
    });
}
function parsed(text, type) {
    if (text === 'null')
        return null;
    if (type === 'number')
        return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    if (type === 'boolean')
        return text === 'true' ? true : text === 'false' ? false : text;
    if (type === 'list')
        return text.split(',').map((part) => part.trim());
    return text;
}
//# sourceMappingURL=settings-environment.js.map