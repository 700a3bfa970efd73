/**
 * Makes the values of the sync-token header: each differs from all others, of other processes too, so that a
 * client which waits for "newer than" after a write never sees an old one.
 * @param prefix unique to this process
 */
export function syncTokens(prefix) {
    let count = 0;
    return () => `${prefix}.${(++count).toString(36)}`;
}
//# sourceMappingURL=sync-token.js.map