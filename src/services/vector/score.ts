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

/** pgvector's HNSW takes `vector` up to 2,000 dimensions and `halfvec` up to 4,000. */
const MAX_VECTOR_DIMENSION = 2_000;
export const MAX_DIMENSION = 4_000;

/** Largest finite float16; pgvector refuses to turn more into `halfvec`. */
const FLOAT16_MAX = 65_504;

/** How one index compares vectors, as SQL text. */
export interface Comparison {
  /** Sort key (ascending) that the HNSW index serves. */
  readonly nearestFirst: (a: string, b: string) => string;
  /** Score of two vectors. As a sort key (descending) it asks for an exact scan. */
  readonly score: (a: string, b: string) => string;
  /** Indexed expression and operator class of `create index ... using hnsw`. */
  readonly indexed: (a: string) => string;
  readonly needsLength: boolean;
  /** Largest size of a component that the index can hold; `undefined` where float32 is the only limit. */
  readonly largestComponent: number | undefined;
}

/**
 * SQL of a similarity function at a dimension. Above 2,000 dimensions the index is built on half precision (under
 * COSINE of the normalised vector, so that its size cannot leave float16's range); the score always comes from the
 * stored float32 components.
 */
export function comparison(similarity: SimilarityFunction, dimension: number): Comparison {
  const { operator, operatorClass, score, needsLength } = FORMULAS[similarity];
  if (dimension <= MAX_VECTOR_DIMENSION) {
    return {
      nearestFirst: (a, b) => `${a} ${operator} ${b}`,
      score,
      indexed: (a) => `${a} vector_${operatorClass}_ops`,
      needsLength,
      largestComponent: undefined,
    };
  }
  const half = (a: string) => `(${needsLength ? `l2_normalize(${a})` : a}::halfvec(${dimension}))`;
  return {
    nearestFirst: (a, b) => `${half(a)} ${operator} ${half(b)}`,
    score,
    indexed: (a) => `${half(a)} halfvec_${operatorClass}_ops`,
    needsLength,
    largestComponent: needsLength ? undefined : FLOAT16_MAX,
  };
}
