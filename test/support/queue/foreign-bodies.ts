import fc from 'fast-check';

/** Bodies of bulk calls that are not understood: any JSON, objects of `keys` with values of any kind, and what is no JSON. */
export const foreignBodies = (keys: readonly string[]) =>
  fc.oneof(
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc
      .array(fc.tuple(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 1 })), {
        minLength: 1,
        maxLength: 3,
      })
      // written out, since an object would lose `__proto__`
      .map(
        (pairs) =>
          `{${pairs.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`,
      ),
    fc.string({ minLength: 1 }).filter((text) => text.trim() !== ''),
  );
