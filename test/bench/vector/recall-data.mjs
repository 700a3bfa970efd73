import { generator, normalise, normals } from './data.mjs';

/**
 * Vectors of unit length with attributes, and questions to them.
 * @typedef {object} DataSet
 * @property {string} title
 * @property {number} dimension
 * @property {Float32Array} vectors
 * @property {(n: number) => object} metadataOf
 * @property {{ title: string, filter?: string, queries: { vector: Float32Array, filter?: string, matches: (n: number) => boolean }[] }[]} rows
 */

/** Shares of the languages; a record's language follows its cluster. */
const LANGUAGES = { en: 0.6, fr: 0.2, de: 0.1, es: 0.05, it: 0.04, pt: 0.01 };
const SHARES = [0.5, 0.1, 0.01, 0.001, 0.0001];
const TOPICS = 40;

function everything() {
  return true;
}

/** @param {number} share */
function percent(share) {
  return `${Number((share * 100).toPrecision(3))} %`;
}

/** Texts in six languages: clusters of topics within clusters of languages. @returns {DataSet} */
export function languages({ count = 30_000, dimension = 64, seed, queriesPerRow }) {
  const random = generator(seed);
  const normal = normals(random);
  const names = Object.keys(LANGUAGES);
  const point = (scale) => Float32Array.from({ length: dimension }, () => normal() * scale);
  const centres = names.map(() => point(1));
  const topics = names.map(() => Array.from({ length: TOPICS }, () => point(0.8)));
  const textIn = (language) => {
    const topic = topics[language][Math.floor(random() * TOPICS)];
    const vector = point(0.5).map((x, i) => x + centres[language][i] + topic[i]);
    normalise(vector);
    return vector;
  };
  const anyLanguage = () => {
    let place = random();
    return Math.max(
      0,
      names.findIndex((name) => {
        place -= LANGUAGES[name];
        return place < 0;
      }),
    );
  };
  const vectors = new Float32Array(count * dimension);
  const languageOf = new Uint8Array(count);
  const chance = new Float64Array(count);
  for (let n = 0; n < count; n++) {
    languageOf[n] = anyLanguage();
    vectors.set(textIn(languageOf[n]), n * dimension);
    chance[n] = random();
  }
  const asked = (language) => Array.from({ length: queriesPerRow }, () => textIn(names.indexOf(language)));
  const row = (title, vectorsAsked, filter, matches) => ({
    title,
    queries: vectorsAsked.map((vector) => ({ vector, filter, matches })),
  });
  const inLanguage = (name) => (n) => names[languageOf[n]] === name;
  const english = asked('en');
  const rows = [
    row('no filter', english, undefined, everything),
    ...['en', 'fr', 'de', 'pt'].map((name) =>
      row(
        `own cluster, ${percent(LANGUAGES[name])}`,
        name === 'en' ? english : asked(name),
        `lang = '${name}'`,
        inLanguage(name),
      ),
    ),
    ...['fr', 'de', 'es', 'pt'].map((name) =>
      row(`other cluster, ${percent(LANGUAGES[name])}`, english, `lang = '${name}'`, inLanguage(name)),
    ),
    ...['en', 'fr'].map((name) =>
      row(
        `!= own language, ${percent(1 - LANGUAGES[name])}`,
        asked(name),
        `lang != '${name}'`,
        (n) => !inLanguage(name)(n),
      ),
    ),
    ...SHARES.map((share) =>
      row(`chance, ${percent(share)}`, english, `chance < ${share}`, (n) => chance[n] < share),
    ),
    ...SHARES.map((share) =>
      row(`chance by GIN, ${percent(share)}`, english, `below CONTAINS ${share}`, (n) => chance[n] < share),
    ),
  ];
  return {
    title: `${count} x ${dimension}, languages`,
    dimension,
    vectors,
    metadataOf: (n) => ({
      lang: names[languageOf[n]],
      chance: chance[n],
      below: SHARES.filter((share) => chance[n] < share),
    }),
    rows,
  };
}

/** Clusters; each record knows its place among all by the distance to each of the questions. @returns {DataSet} */
export function distances({ count = 20_000, dimension = 256, seed, queriesPerRow }) {
  const random = generator(seed);
  const normal = normals(random);
  const centres = Array.from({ length: 200 }, () => Float32Array.from({ length: dimension }, () => normal()));
  const text = () => {
    const centre = centres[Math.floor(random() * centres.length)];
    const vector = centre.map((x) => x + 0.7 * normal());
    normalise(vector);
    return vector;
  };
  const vectors = new Float32Array(count * dimension);
  for (let n = 0; n < count; n++) vectors.set(text(), n * dimension);
  const questions = Array.from({ length: queriesPerRow }, text);
  // 0: the nearest of all, almost 1: the farthest
  const places = questions.map((question) => {
    const products = Float64Array.from({ length: count }, (_, n) => {
      let sum = 0;
      for (let i = 0; i < dimension; i++) sum += question[i] * vectors[n * dimension + i];
      return sum;
    });
    const order = Array.from({ length: count }, (_, n) => n).sort((a, b) => products[b] - products[a]);
    const place = new Float64Array(count);
    order.forEach((n, i) => {
      place[n] = i / count;
    });
    return place;
  });
  const row = (title, filterOf, matches) => ({
    title,
    queries: questions.map((vector, q) => ({
      vector,
      filter: filterOf(`place.q${q}`),
      matches: (n) => matches(places[q][n]),
    })),
  });
  return {
    title: `${count} x ${dimension}, clustered`,
    dimension,
    vectors,
    metadataOf: (n) => ({ place: Object.fromEntries(places.map((place, q) => [`q${q}`, place[n]])) }),
    rows: [
      { title: 'no filter', queries: questions.map((vector) => ({ vector, matches: everything })) },
      ...[0.5, 0.1].map((share) =>
        row(
          `nearest ${percent(share)}`,
          (field) => `${field} < ${share}`,
          (place) => place < share,
        ),
      ),
      ...SHARES.map((share) =>
        row(
          `farthest ${percent(share)}`,
          (field) => `${field} >= ${1 - share}`,
          (place) => place >= 1 - share,
        ),
      ),
    ],
  };
}

/** Texts of which many are one of a few, as boilerplate is. @param {{ equal: number, groups: number }} options @returns {DataSet} */
export function duplicates({ count = 10_000, dimension = 64, equal, groups, seed, queriesPerRow }) {
  const random = generator(seed);
  const normal = normals(random);
  const centres = Array.from({ length: 50 }, () => Float32Array.from({ length: dimension }, () => normal()));
  const near = (point, scale) => {
    const vector = point.map((x) => x + scale * normal());
    normalise(vector);
    return vector;
  };
  const text = () => near(centres[Math.floor(random() * centres.length)], 0.6);
  const beside = (group) => near(centres[group % centres.length], 0.6);
  const repeated = Array.from({ length: groups }, (_, group) => beside(group));
  const vectors = new Float32Array(count * dimension);
  // spread over all, as they come when documents are cut into pieces
  const isEqual = (n) => Math.floor(((n + 1) * equal) / count) > Math.floor((n * equal) / count);
  for (let n = 0, next = 0; n < count; n++)
    vectors.set(isEqual(n) ? repeated[next++ % groups] : text(), n * dimension);
  const even = (n) => n % 2 === 0;
  const besideEqual = Array.from({ length: queriesPerRow }, (_, q) => beside(q % groups));
  const elsewhere = Array.from({ length: queriesPerRow }, text);
  const asked = (questions) => questions.map((vector) => ({ vector, matches: everything }));
  return {
    title: `${count} x ${dimension}, ${equal} of them equal to one of ${groups}`,
    dimension,
    vectors,
    metadataOf: (n) => ({ even: even(n) }),
    rows: [
      { title: 'beside equal ones', queries: asked(besideEqual) },
      { title: 'elsewhere', queries: asked(elsewhere) },
      {
        title: 'elsewhere, 50 %',
        queries: elsewhere.map((vector) => ({ vector, filter: 'even = true', matches: even })),
      },
    ],
  };
}
