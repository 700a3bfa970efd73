import { notJson } from './json-bounds.js';

export const BLANK = /^[ \t\n\r]*$/;

/** JSON text of the members of an array, such as `1,"a"`, as values. */
export type ReadMembers = (text: string) => readonly unknown[];

/** A container that is put together of several pieces. */
export class Frame {
  /** A member, or a large one that has been begun, is there since the last comma: only blanks may follow. */
  attached = false;
  count = 0;
  private readonly list: unknown[] = [];
  private readonly members: Record<string, unknown> = {};
  private afterComma = false;

  constructor(readonly isArray: boolean) {}

  get value(): unknown {
    return this.isArray ? this.list : this.members;
  }

  /** Takes a member apart from the others. @param before the text before it: its key @param at where that begins */
  attach(value: unknown, before: string, at: number): void {
    if (this.attached) throw notJson(at);
    if (this.isArray) {
      if (!BLANK.test(before)) throw notJson(at);
      this.list.push(value);
      this.count++;
    } else {
      const [key = ''] = Object.keys(parse(`{${before}0}`, at) as object);
      this.put(key, value);
    }
    this.afterComma = false;
  }

  /** Takes the members that `text`, from `at` on, consists of. @param last whether the container ends behind it */
  add(text: string, at: number, last: boolean, readMembers: ReadMembers): void {
    const isBlank = BLANK.test(text);
    if (this.attached) {
      if (!isBlank) throw notJson(at);
      this.attached = false;
    } else if (!isBlank) this.addMembers(text, at, readMembers);
    else if (!last || this.afterComma) throw notJson(at);
    this.afterComma = !last;
  }

  private addMembers(text: string, at: number, readMembers: ReadMembers): void {
    if (!this.isArray) {
      const members = parse(`{${text}}`, at) as Record<string, unknown>;
      for (const key of Object.keys(members)) this.put(key, members[key]);
      return;
    }
    let values: readonly unknown[];
    try {
      values = readMembers(text);
    } catch (error) {
      throw error instanceof SyntaxError ? notJson(at, error.message) : error;
    }
    for (const value of values) this.list.push(value);
    this.count += values.length;
  }

  private put(key: string, value: unknown): void {
    this.count++;
    // what an assignment does to this key is not what JSON.parse does
    if (key === '__proto__')
      Object.defineProperty(this.members, key, {
        value,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    else this.members[key] = value;
  }
}

function parse(text: string, at: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson(at, (error as SyntaxError).message);
  }
}
