import { z } from 'zod';

export type Json = { [key: string]: unknown };

/** The schemas of a document under `components.schemas`, each once: what they define inside themselves stands beside them. */
export class SchemaComponents {
  readonly schemas: Record<string, Json> = {};

  /** Adds a schema under a name. @returns a reference to it */
  add(name: string, schema: z.ZodType, io: 'input' | 'output'): Json {
    this.put(name, this.inline(name, schema, io));
    return ref(name);
  }

  /**
   * JSON Schema of what is sent (`input`) or answered (`output`); what it cannot say is shown as anything.
   * @param name by which what it defines without a name of its own is called
   */
  inline(name: string, schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $defs = {}, ...own } = jsonSchema(schema, io);
    const nameOf = (inner: string) =>
      inner.startsWith('__') ? `${name}${inner.replace(/^__schema/, 'Part')}` : inner;
    const lifted = (value: unknown): Json =>
      JSON.parse(
        JSON.stringify(value).replace(
          /"\$ref":"#(?:\/\$defs\/([^"]*))?"/g,
          (_all, inner: string | undefined) =>
            `"$ref":"#/components/schemas/${inner === undefined ? name : nameOf(inner)}"`,
        ),
      ) as Json;
    for (const [inner, definition] of Object.entries($defs as Record<string, Json>)) {
      const { id: _id, ...shown } = lifted(definition);
      this.put(nameOf(inner), shown);
    }
    return lifted(own);
  }

  private put(name: string, schema: Json): void {
    const known = this.schemas[name];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema))
      throw new Error(`two schemas of the document are called ${name}`);
    this.schemas[name] = schema;
  }
}

export function ref(name: string, kind: 'schemas' | 'responses' = 'schemas'): Json {
  return { $ref: `#/components/${kind}/${name}` };
}

/** `queue.getMessage`, `reply`: `QueueGetMessageReply`. */
export function componentName(...words: readonly string[]): string {
  return words
    .flatMap((word) => word.split('.'))
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('');
}

/**
 * A schema may say what it is shown as (`documentedAs` of its metadata): where it takes several forms of the same, a client
 * needs to know one of them, and generators make little of a union.
 */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, id: __, ...shown } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  if (io === 'input') withoutNull(shown);
  simplify(shown, io);
  return shown;
}

function simplify(shown: Json, io: 'input' | 'output'): void {
  const { documentedAs, description } = shown;
  if (documentedAs !== undefined) {
    for (const key of Object.keys(shown)) delete shown[key];
    Object.assign(shown, documentedAs, description === undefined ? {} : { description });
  }
  // openapi-generator knows no type beside null in such a list
  if (Array.isArray(shown.type) && shown.type.filter((type) => type !== 'null').length > 1) delete shown.type;
  if (shown.type === 'integer') plainInteger(shown);
  const { properties, required = [] } = shown as { properties?: Record<string, Json>; required?: string[] };
  if (io === 'input')
    for (const [name, property] of Object.entries(properties ?? {}))
      if (!required.includes(name)) withoutNull(property);
  for (const value of Object.values(shown))
    for (const inner of Array.isArray(value) ? value : [value])
      if (typeof inner === 'object' && inner !== null) simplify(inner as Json, io);
}

/** The bounds of safe integers say nothing; without a format clients in Go and Java take 32 bits. */
function plainInteger(shown: Json): void {
  if (shown.minimum === Number.MIN_SAFE_INTEGER) delete shown.minimum;
  if (shown.maximum === Number.MAX_SAFE_INTEGER) delete shown.maximum;
  if (shown.maximum === undefined || (shown.maximum as number) > 0x7fff_ffff) shown.format = 'int64';
}

/** Of what a request may leave out null is the same as nothing. */
function withoutNull(shown: Json): void {
  if (Array.isArray(shown.type)) {
    const types = shown.type.filter((type) => type !== 'null');
    shown.type = types.length === 1 ? types[0] : types;
  }
  const { anyOf } = shown;
  if (!Array.isArray(anyOf)) return;
  const [first, ...more] = (anyOf as Json[]).filter(({ type }) => type !== 'null');
  delete shown.anyOf;
  if (more.length === 0) Object.assign(shown, { ...first, ...shown });
  else shown.anyOf = [first, ...more];
}
