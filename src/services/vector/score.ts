/** What one similarity function is in SQL; `a` and `b` are expressions of type `vector`. */
interface SimilarityFormula {
  /** Operator by which the nearest come first. */
  readonly operator: string;
  /** First part of pgvector's operator class, such as `cosine` in `vector_cosine_ops`. */
  readonly operatorClass: string;
  /** The score that clients see, as float4: 1 for an identical vector under COSINE and EUCLIDEAN. */
  readonly score: (a: string, b: string) => string;
  /** A vector without length has no direction to compare. */
  readonly needsLength: boolean;
}

const FORMULAS = {
  COSINE: {
    operator: '<=>',
    operatorClass: 'cosine',
    score: (a, b) => `(1 - (${a} <=> ${b}) / 2)::float4`,
    needsLength: true,
  },
  EUCLIDEAN: {
    operator: '<->',
    operatorClass: 'l2',
    score: (a, b) => `(1 / (1 + vector_l2_squared_distance(${a}, ${b})))::float4`,
    needsLength: false,
  },
  DOT_PRODUCT: {
    operator: '<#>',
    operatorClass: 'ip',
    score: (a, b) => `((1 - (${a} <#> ${b})) / 2)::float4`,
    needsLength: false,
  },
} as const satisfies Record<string, SimilarityFormula>;

export type SimilarityFunction = keyof typeof FORMULAS;

export const SIMILARITY_NAMES = [
  'COSINE',
  'EUCLIDEAN',
  'DOT_PRODUCT',
] as const satisfies SimilarityFunction[];

/** How components are kept: float32, or float16 in half the space. */
export const STORAGE_NAMES = ['vector', 'halfvec'] as const;
export type Storage = (typeof STORAGE_NAMES)[number];

/** pgvector's HNSW takes `vector` up to 2,000 dimensions and `halfvec` up to 4,000; both types hold up to 16,000. */
const MAX_VECTOR_DIMENSION = 2_000;
export const MAX_HNSW_DIMENSION = 4_000;
export const MAX_DIMENSION = 16_000;

/** Largest finite float16; pgvector refuses to turn more into `halfvec`. */
const FLOAT16_MAX = 65_504;
/** Half of the smallest float16: what is not larger becomes 0. */
const FLOAT16_ZERO = 2 ** -25;

/** How one index compares vectors, as SQL text. */
export interface Comparison {
  /** Type of the stored column. */
  readonly columnType: string;
  /** An expression of type `vector` as what the column takes. */
  readonly stored: (a: string) => string;
  /** Sort key (ascending) that the HNSW index serves, of a column and a parameter of type `vector`. */
  readonly nearestFirst: (column: string, parameter: string) => string;
  /** Score of a column and a parameter of type `vector`. As a sort key (descending) it asks for an exact scan. */
  readonly score: (column: string, parameter: string) => string;
  /** Indexed expression and operator class of `create index ... using hnsw`. */
  readonly indexed: (column: string) => string;
  /** The order of the HNSW index is coarse: what it finds is scored anew, so many times as much as is asked for. */
  readonly rescored: number | undefined;
  /** The same for equal vectors of the column's type, as uuid. */
  readonly digest: (a: string) => string;
  readonly needsLength: boolean;
  /** Largest size of a component that column and index can hold; `undefined` where float32 is the only limit. */
  readonly largestComponent: number | undefined;
  /** Components up to this size are stored as 0; `undefined` where float32 is the only limit. */
  readonly vanishingComponent: number | undefined;
}

/**
 * SQL of a similarity function at a dimension. Above 2,000 dimensions the index is built on half precision (under
 * COSINE of the normalised vector, so that its size cannot leave float16's range); the score comes from the stored
 * components in float32, and an index of `halfvec` rounds what it is asked for as it rounded what it stored. Above 4,000
 * there is no HNSW index.
 */
export function comparison(similarity: SimilarityFunction, dimension: number, storage: Storage): Comparison {
  const { operator, operatorClass, score, needsLength } = FORMULAS[similarity];
  const half = (a: string) => `${a}::halfvec(${dimension})`;
  if (storage === 'halfvec') {
    return {
      columnType: `halfvec(${dimension})`,
      stored: half,
      nearestFirst: (column, parameter) => `${column} ${operator} ${half(parameter)}`,
      score: (column, parameter) => score(`${column}::vector`, `${half(parameter)}::vector`),
      indexed: (column) => `${column} halfvec_${operatorClass}_ops`,
      rescored: undefined,
      digest: (a) => `md5(halfvec_send(${a}))::uuid`,
      needsLength,
      largestComponent: FLOAT16_MAX,
      vanishingComponent: FLOAT16_ZERO,
    };
  }
  const common = {
    columnType: `vector(${dimension})`,
    stored: (a: string) => a,
    score,
    rescored: undefined,
    digest: (a: string) => `md5(vector_send(${a}))::uuid`,
    needsLength,
    vanishingComponent: undefined,
  };
  if (dimension <= MAX_VECTOR_DIMENSION || dimension > MAX_HNSW_DIMENSION) {
    return {
      ...common,
      nearestFirst: (column, parameter) => `${column} ${operator} ${parameter}`,
      indexed: (column) => `${column} vector_${operatorClass}_ops`,
      largestComponent: undefined,
    };
  }
  const narrowed = (a: string) => `(${half(needsLength ? `l2_normalize(${a})` : a)})`;
  return {
    ...common,
    nearestFirst: (column, parameter) => `${narrowed(column)} ${operator} ${narrowed(parameter)}`,
    indexed: (column) => `${narrowed(column)} halfvec_${operatorClass}_ops`,
    largestComponent: needsLength ? undefined : FLOAT16_MAX,
  };
}

/** Bits are equal for many vectors; of 10 times as many the nearest are nearly always the nearest of all. */
const RESCORED = 10;

/** The same with a graph over the signs of the components. */
export function quantised(exact: Comparison, dimension: number): Comparison {
  const bits = (a: string) => `(binary_quantize(${a})::bit(${dimension}))`;
  return {
    ...exact,
    nearestFirst: (column, parameter) => `${bits(column)} <~> ${bits(parameter)}`,
    indexed: (column) => `${bits(column)} bit_hamming_ops`,
    rescored: RESCORED,
  };
}
