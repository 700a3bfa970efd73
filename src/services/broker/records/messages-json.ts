import type { ByteReader } from './byte-reader.js';
import { JsonBytes, type JsonConstant, jsonConstant } from './json-bytes.js';

const TIMESTAMP = jsonConstant(',"timestamp":');
const KEY = jsonConstant(',"key":"');
const VALUE = jsonConstant('","value":"');
const NO_HEADERS = jsonConstant('","headers":[]}');
const HEADERS = jsonConstant('","headers":[');
const HEADER = jsonConstant('{"key":"');
const FURTHER_HEADER = jsonConstant(',{"key":"');
const HEADER_END = jsonConstant('"}');
const END = jsonConstant(']}');
const CLOSING = jsonConstant(']');
const BARE_KEY = jsonConstant(',"key":');
const BARE_VALUE = jsonConstant(',"value":');
const BARE_HEADERS = jsonConstant(',"headers":[');
const QUOTE_AND_VALUE = jsonConstant('","value":');
const BRACE = jsonConstant('}');
const QUOTE = jsonConstant('"');
const NULL = jsonConstant('null');
const OPENING = '['.charCodeAt(0);

/** Headers between two places to rest. */
const STEP = 500;

/** The body of a reply without records. */
export const NO_MESSAGES = Buffer.from('[]');

/** What a reply of records may hold, and how. */
export interface ReplyForm {
  readonly maxRecords: number;
  /** As they are in Kafka. */
  readonly maxBytes: number;
  /** Keys, values and values of headers as base64, and null where there are none; else as text. */
  readonly isBase64?: boolean | undefined;
}

/** How every record of a partition begins, behind another. */
export function partitionConstant(topic: string, partition: number): JsonConstant {
  return jsonConstant(`,{"topic":${JSON.stringify(topic)},"partition":${partition},"offset":`);
}

/** The body of a reply (an array of the contract's Message), made record by record. */
export class MessagesJson {
  count = 0;
  private json: JsonBytes | undefined;
  private bytesLeft: number;

  constructor(private readonly form: ReplyForm) {
    this.bytesLeft = form.maxBytes;
  }

  get isBase64(): boolean {
    return this.form.isBase64 === true;
  }

  /** Whether a record of so many bytes has room; the first one always has. */
  hasRoom(bytes: number): boolean {
    return this.count === 0 || (this.count < this.form.maxRecords && this.bytesLeft >= bytes);
  }

  /** @param rest what follows the record's offset in Kafka's format: key, value and headers */
  add(partition: JsonConstant, offset: number, timestamp: number, rest: ByteReader, bytes: number): void {
    const json = this.begin(partition, offset, timestamp, bytes);
    copyText(json, rest);
    json.constant(VALUE);
    copyText(json, rest);
    copyHeaders(json, rest);
  }

  /** The same for a record of any length. */
  *addLong(
    partition: JsonConstant,
    offset: number,
    timestamp: number,
    rest: ByteReader,
    bytes: number,
  ): Generator<void, void> {
    const json = this.begin(partition, offset, timestamp, bytes);
    yield* copyLongText(json, rest);
    json.constant(VALUE);
    yield* copyLongText(json, rest);
    yield* copyLongHeaders(json, rest);
  }

  /** The same, with bytes as base64. */
  *addBase64(
    partition: JsonConstant,
    offset: number,
    timestamp: number,
    rest: ByteReader,
    bytes: number,
  ): Generator<void, void> {
    const json = this.begin(partition, offset, timestamp, bytes, BARE_KEY);
    yield* copyBytes(json, rest);
    json.constant(BARE_VALUE);
    yield* copyBytes(json, rest);
    json.constant(BARE_HEADERS);
    const count = rest.varint();
    for (let i = 0; i < count; i++) {
      json.constant(i === 0 ? HEADER : FURTHER_HEADER);
      yield* copyLongText(json, rest);
      json.constant(QUOTE_AND_VALUE);
      yield* copyBytes(json, rest);
      json.constant(BRACE);
      if (i % STEP === STEP - 1) yield;
    }
    json.constant(END);
  }

  private begin(
    partition: JsonConstant,
    offset: number,
    timestamp: number,
    bytes: number,
    key = KEY,
  ): JsonBytes {
    this.json ??= new JsonBytes();
    const { json } = this;
    json.constant(partition);
    json.integer(offset);
    json.constant(TIMESTAMP);
    json.integer(timestamp);
    json.constant(key);
    this.count += 1;
    this.bytesLeft -= bytes;
    return json;
  }

  /** The whole body; called once. */
  *finish(): Generator<void, Buffer> {
    if (this.json === undefined) return NO_MESSAGES;
    this.json.constant(CLOSING);
    const body = yield* this.json.finish();
    // the first record's comma
    body[0] = OPENING;
    return body;
  }
}

function copyHeaders(json: JsonBytes, from: ByteReader): void {
  const count = from.varint();
  json.constant(count > 0 ? HEADERS : NO_HEADERS);
  for (let i = 0; i < count; i++) {
    json.constant(i === 0 ? HEADER : FURTHER_HEADER);
    copyText(json, from);
    json.constant(VALUE);
    copyText(json, from);
    json.constant(HEADER_END);
  }
  if (count > 0) json.constant(END);
}

function* copyLongHeaders(json: JsonBytes, from: ByteReader): Generator<void, void> {
  const count = from.varint();
  json.constant(count > 0 ? HEADERS : NO_HEADERS);
  for (let i = 0; i < count; i++) {
    json.constant(i === 0 ? HEADER : FURTHER_HEADER);
    yield* copyLongText(json, from);
    json.constant(VALUE);
    yield* copyLongText(json, from);
    json.constant(HEADER_END);
    if (i % STEP === STEP - 1) yield;
  }
  if (count > 0) json.constant(END);
}

function* copyLongText(json: JsonBytes, from: ByteReader): Generator<void, void> {
  const length = from.varint();
  if (length <= 0) return;
  yield* json.longText(from.source, from.at, from.at + length);
  from.skip(length);
}

/** Absent bytes are null. */
function* copyBytes(json: JsonBytes, from: ByteReader): Generator<void, void> {
  const length = from.varint();
  if (length < 0) {
    json.constant(NULL);
    return;
  }
  json.constant(QUOTE);
  yield* json.base64(from.source, from.at, from.at + length);
  json.constant(QUOTE);
  from.skip(length);
}

/** Absent text is "". */
function copyText(json: JsonBytes, from: ByteReader): void {
  const length = from.varint();
  if (length <= 0) return;
  json.text(from.source, from.at, from.at + length);
  from.skip(length);
}
