import type { BoundStatement } from './dense-search.js';
import {
  type Included,
  type IndexShape,
  type LeftOut,
  notSeen,
  Parameters,
  recordColumns,
  spaceCte,
} from './index-shape.js';

/** A search for the greatest inner products over common indices. */
export interface SparseSearch {
  /** Weight of each index asked for. */
  readonly terms: ReadonlyMap<number, number>;
  /** Weights are multiplied by how rare their index is in the namespace. */
  readonly idf: boolean;
  readonly namespace: string;
  readonly topK: number;
  readonly included: Included;
  readonly filter: string | undefined;
  readonly without: LeftOut | undefined;
}

/** Columns: those of the record and `score` as text. Records without a common index do not appear. Always exact. */
export function sparseSearch(shape: IndexShape, search: SparseSearch): BoundStatement {
  const { records, postings } = shape;
  const parameters = new Parameters();
  const namespace = parameters.add(search.namespace, 'text');
  const dims = parameters.add([...search.terms.keys()], 'int[]');
  const weights = parameters.add([...search.terms.values()], 'float8[]');
  const topK = parameters.add(search.topK, 'int');
  const conditions = [
    ...(search.filter === undefined ? [] : [`r.metadata @@ ${parameters.add(search.filter, 'jsonpath')}`]),
    ...(search.without === undefined ? [] : [notSeen(shape, 's.row', search.without, parameters)]),
  ];
  const joined =
    search.filter === undefined
      ? ''
      : ` join ${records} r on r.namespace_id = (select id from space) and r.row = s.row`;
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
  const text = `with ${spaceCte(shape, namespace)}, terms as materialized (
  select t.dim, ${search.idf ? WEIGHT_BY_RARITY : 't.weight'} as weight from unnest(${dims}, ${weights}) as t (dim, weight)${
    search.idf ? documentFrequency(postings) : ''
  }
), scored as materialized (
  -- + 0 makes 0 of -0
  select p.row, (sum(p.value${search.idf ? '' : '::float8'} * t.weight) + 0)::float4 as score
  from terms t join ${postings} p on p.namespace_id = (select id from space) and p.dim = t.dim group by p.row
), nearest as materialized (
  select s.row, s.score from scored s${joined}${where} order by s.score desc, s.row limit ${topK}
)
select ${recordColumns(shape, search.included, 'r')}, nearest.score::text as score
from nearest join ${records} r on r.namespace_id = (select id from space) and r.row = nearest.row
order by nearest.score desc, nearest.row`;
  return { text, values: parameters.values };
}

/**
 * BM25's inverse document frequency, with the 1 that keeps it positive; every record of the index has a sparse part. Rounded to
 * float32 at each step, products and sum too, as the hosted product does: its scores come out digit by digit.
 */
const WEIGHT_BY_RARITY =
  't.weight::float4 * ln(1 + (total.n - frequency.n + 0.5) / (frequency.n + 0.5))::float4';

function documentFrequency(postings: string): string {
  return `
  cross join (select record_count::float8 as n from space) total
  cross join lateral (
    select count(*)::float8 as n from ${postings} where namespace_id = (select id from space) and dim = t.dim
  ) frequency`;
}
