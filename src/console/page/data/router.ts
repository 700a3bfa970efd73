import { signal } from '@preact/signals';

/** Where the reader is: behind the `#`, so that no proxy or prefix is in the way. */
export interface Place {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

const read = (): Place => {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { path: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
};

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

export const place = signal<Place>(read());

addEventListener('hashchange', () => {
  place.value = read();
});

export function hrefOf(
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const text = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`;
  return `#/${path.map(encodeURIComponent).join('/')}${text}`;
}

export function go(path: readonly string[], query?: Readonly<Record<string, string | undefined>>): void {
  location.hash = hrefOf(path, query);
}

/** Another query at the same place, without a step in the history. */
export function replaceQuery(query: Readonly<Record<string, string | undefined>>): void {
  history.replaceState(null, '', hrefOf(place.value.path, query));
  place.value = read();
}

/** Back to the beginning, and what stood in the address is gone from the history, too. */
export function forgetPlace(): void {
  history.replaceState(null, '', '#/');
  place.value = read();
}
