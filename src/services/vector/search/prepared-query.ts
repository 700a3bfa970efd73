import { HttpError } from '../../../http/errors.js';
import { fieldPath } from '../filter/field-path.js';
import type { Filter } from '../filter/filter-ast.js';
import { filterJsonpath, isIndexed } from '../filter/filter-jsonpath.js';
import { readFilter } from '../filter/read-filter.js';
import type { IndexParts } from '../index-parts.js';
import { packOne } from '../records/components.js';
import { isAbsent } from '../records/record-batch.js';
import { sparseVectorOf, summed } from '../records/sparse-vector.js';
import type { GroupedQuery } from '../schemas/queries.js';
import type { MetadataFilter } from '../statements/dense-search.js';
import { type Included, includedBy } from '../statements/index-shape.js';
import type { FusionAlgorithm } from './fusion.js';
import { checkGrouping, type Grouping } from './grouping.js';

/** A query that was checked and packed, ready to be run, also more than once. */
export interface PreparedQuery {
  readonly vector: Buffer | undefined;
  readonly terms: ReadonlyMap<number, number> | undefined;
  readonly topK: number;
  readonly included: Included;
  readonly filter: MetadataFilter | undefined;
  readonly idf: boolean;
  readonly fusion: FusionAlgorithm;
  readonly ef: number | undefined;
  readonly exact: boolean;
  /** Each list of a hybrid query gives so many candidates. */
  readonly candidates: number;
  /** Of an entry, at least. */
  readonly minScore: number | undefined;
  readonly grouping?: Grouping;
}

/** Candidates of each list of a hybrid query: longer than the result, so that records good in both are found. */
const FUSED_CANDIDATES = 100;
const FUSED_FACTOR = 3;
/**
 * Checks a query.
 * @param place where it stands in the request, for the error
 * @throws HttpError
 */
export function prepareQuery(
  { settings, shape, rules }: IndexParts,
  query: GroupedQuery,
  place: string,
): PreparedQuery {
  checkTopK(settings, query.topK, `${place}.topK`);
  checkKinds(query, shape.dense !== undefined, shape.sparse, place);
  const filter = query.filter === undefined ? undefined : readFilter(query.filter);
  return {
    vector: isAbsent(query.vector) ? undefined : packOne(query.vector, rules.components, `${place}.vector`),
    terms: isAbsent(query.sparseVector)
      ? undefined
      : summed(sparseVectorOf(query.sparseVector, `${place}.sparseVector`)),
    topK: query.topK,
    included: includedBy(query),
    filter: filter && metadataFilter(filter),
    idf: query.weightingStrategy === 'IDF',
    fusion: query.fusionAlgorithm,
    ef: query.ef,
    exact: query.exact || !settings.hnsw.enabled,
    candidates: Math.max(FUSED_CANDIDATES, FUSED_FACTOR * query.topK),
    minScore: query.minScore,
    ...(query.groupBy === undefined ? {} : { grouping: groupingOf(query.groupBy, query, filter, place) }),
  };
}

function groupingOf(
  field: string,
  { topK, groupSize = 1 }: GroupedQuery,
  filter: Filter | undefined,
  place: string,
): Grouping {
  checkGrouping(topK, groupSize, place);
  return { path: fieldPath(field), size: groupSize, filter };
}

function metadataFilter(filter: Filter): MetadataFilter {
  return { jsonpath: filterJsonpath(filter), isIndexed: isIndexed(filter) };
}

/** @throws HttpError 422 */
export function checkTopK({ maxTopK }: IndexParts['settings'], topK: number, place: string): void {
  if (topK > maxTopK)
    throw new HttpError('unprocessable', `${place}: ${topK}, more than the limit of ${maxTopK}`);
}

function checkKinds(
  { vector, sparseVector }: GroupedQuery,
  dense: boolean,
  sparse: boolean,
  place: string,
): void {
  if (!dense && !isAbsent(vector))
    throw new HttpError('unprocessable', `${place}.vector: this index is sparse: it takes no vector`);
  if (!sparse && !isAbsent(sparseVector))
    throw new HttpError(
      'unprocessable',
      `${place}.sparseVector: this index is dense: it takes no sparseVector`,
    );
  if (isAbsent(vector) && isAbsent(sparseVector)) {
    const parts = [...(dense ? ['vector'] : []), ...(sparse ? ['sparseVector'] : [])].join(' or ');
    throw new HttpError('unprocessable', `${place}: a query of this index needs ${parts}`);
  }
}
