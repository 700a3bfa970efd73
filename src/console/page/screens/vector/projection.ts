/** Passes of the power method for one direction. */
const PASSES = 30;

/**
 * The two directions in which vectors differ most (principal components), and each vector's place along them. Found by
 * powers of the covariance, which is never written down: time grows with vectors times components.
 */
export function project(vectors: readonly Float32Array[]): Float32Array {
  const size = vectors[0]?.length ?? 0;
  const centred = centre(vectors, size);
  const first = direction(centred, size, undefined);
  const second = direction(centred, size, first);
  const places = new Float32Array(vectors.length * 2);
  centred.forEach((vector, i) => {
    places[2 * i] = dot(vector, first);
    places[2 * i + 1] = dot(vector, second);
  });
  return places;
}

function centre(vectors: readonly Float32Array[], size: number): Float32Array[] {
  const mean = new Float32Array(size);
  for (const vector of vectors) addScaled(mean, vector, 1 / vectors.length);
  return vectors.map((vector) => vector.map((component, i) => component - (mean[i] as number)));
}

function direction(
  vectors: readonly Float32Array[],
  size: number,
  other: Float32Array | undefined,
): Float32Array {
  // begun at the same place each time, so that the same sample gives the same map
  let current = normal(Float32Array.from({ length: size }, (_, i) => Math.sin(i + 1)));
  for (let pass = 0; pass < PASSES; pass += 1) {
    const next = new Float32Array(size);
    for (const vector of vectors) addScaled(next, vector, dot(vector, current));
    if (other !== undefined) addScaled(next, other, -dot(next, other));
    current = normal(next);
  }
  return current;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

function addScaled(target: Float32Array, vector: Float32Array, factor: number): void {
  for (let i = 0; i < target.length; i += 1)
    target[i] = (target[i] as number) + (vector[i] as number) * factor;
}

function normal(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector));
  return length === 0 ? vector : vector.map((component) => component / length);
}
