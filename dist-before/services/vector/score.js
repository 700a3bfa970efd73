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
};
export const SIMILARITY_NAMES = [
    'COSINE',
    'EUCLIDEAN',
    'DOT_PRODUCT',
];
/** pgvector's HNSW takes `vector` up to 2,000 dimensions and `halfvec` up to 4,000. */
const MAX_VECTOR_DIMENSION = 2_000;
export const MAX_DIMENSION = 4_000;
/** Largest finite float16; pgvector refuses to turn more into `halfvec`. */
const FLOAT16_MAX = 65_504;
/**
 * SQL of a similarity function at a dimension. Above 2,000 dimensions the index is built on half precision (under
 * COSINE of the normalised vector, so that its size cannot leave float16's range); the score always comes from the
 * stored float32 components.
 */
export function comparison(similarity, dimension) {
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
    const half = (a) => `(${needsLength ? `l2_normalize(${a})` : a}::halfvec(${dimension}))`;
    return {
        nearestFirst: (a, b) => `${half(a)} ${operator} ${half(b)}`,
        score,
        indexed: (a) => `${half(a)} halfvec_${operatorClass}_ops`,
        needsLength,
        largestComponent: needsLength ? undefined : FLOAT16_MAX,
    };
}
//# sourceMappingURL=score.js.map