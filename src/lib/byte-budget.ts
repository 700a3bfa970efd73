/** Bytes that several may hold together. */
export class ByteBudget {
  private left: number;

  constructor(bytes: number) {
    this.left = bytes;
  }

  /** @returns false, and takes nothing, when there are not so many left */
  take(bytes: number): boolean {
    if (bytes > this.left) return false;
    this.left -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.left += bytes;
  }
}
