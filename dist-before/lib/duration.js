const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PART = /(\d+)(ms|s|m|h|d)/y;
/**
 * Milliseconds of a duration such as `500ms`, `30s`, `1d10h30m`; digits alone are seconds. `undefined` when the
 * text is none, or names more than 2^53 ms.
 */
export function parseDuration(text) {
    if (/^\d+$/.test(text))
        return bounded(Number(text) * UNIT_MS.s);
    if (text === '')
        return undefined;
    let total = 0;
    PART.lastIndex = 0;
    while (PART.lastIndex < text.length) {
        const part = PART.exec(text);
        if (part === null)
            return undefined;
        total += Number(part[1]) * UNIT_MS[part[2]];
    }
    return bounded(total);
}
function bounded(ms) {
    return Number.isSafeInteger(ms) ? ms : undefined;
}
//# sourceMappingURL=duration.js.map