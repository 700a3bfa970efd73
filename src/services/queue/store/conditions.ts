/** SQL conditions and the values of their parameters, counted on from those that stand before them. */
export interface Conditions {
  readonly sql: string;
  readonly values: unknown[];
}
