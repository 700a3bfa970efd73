/** Segments that need no decoding, none of them empty: what most requests have. */
const PLAIN = /^(?:\/[\w.~-]+)+$/;
const SEGMENT = /^:?\w[\w.~-]*$/;

/** What is found at a path, and what stands there for its parameters. */
export interface PlainMatch<Place> {
  readonly place: Place;
  readonly params: Readonly<Record<string, string>>;
}

interface Pattern<Place> {
  readonly segments: readonly string[];
  readonly place: Place;
}

/**
 * Finds what Express' router finds for plain paths, in the same order: of the patterns whose segments are words or
 * parameters (`/consume/:group/:instance`), the first that fits. `undefined` means no more than that Express is to look.
 * @param places up to the first whose pattern is of another kind; those behind it are not found
 */
export function plainPaths<Place extends { readonly path: string }>(
  places: readonly Place[],
): (path: string) => PlainMatch<Place> | undefined {
  const byLength = new Map<number, Pattern<Place>[]>();
  for (const place of places) {
    const segments = place.path.split('/').slice(1);
    if (!segments.every((segment) => SEGMENT.test(segment))) break;
    const patterns = byLength.get(segments.length) ?? [];
    byLength.set(segments.length, patterns);
    patterns.push({ segments, place });
  }
  return (path) => {
    if (!PLAIN.test(path)) return undefined;
    const words = path.split('/').slice(1);
    for (const { segments, place } of byLength.get(words.length) ?? [])
      if (segments.every((segment, i) => segment === words[i] || segment[0] === ':'))
        return { place, params: paramsOf(segments, words) };
    return undefined;
  };
}

function paramsOf(segments: readonly string[], words: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [i, segment] of segments.entries())
    if (segment[0] === ':') params[segment.slice(1)] = words[i] as string;
  return params;
}
