/**
 * A list into whose middle items are put, and out of which they are taken, without moving all that follow: it is kept in
 * pieces, and only one piece changes.
 */

/** Items of a piece when it is made; one of twice as many is divided. */
const pieceLength = 512;

/** A list with cheap insertion and removal in its middle. */
export class WorkingList {
  readonly #pieces: unknown[][] = [];
  #length: number;

  constructor(items: readonly unknown[]) {
    this.#length = items.length;
    for (let at = 0; at < items.length; at += pieceLength)
      this.#pieces.push(items.slice(at, at + pieceLength));
  }

  get length(): number {
    return this.#length;
  }

  /** The item at a place; undefined where there is none. */
  at(index: number): unknown {
    const { piece, offset } = this.#find(index);
    return this.#pieces[piece]?.[offset];
  }

  set(index: number, item: unknown): void {
    const { piece, offset } = this.#find(index);
    (this.#pieces[piece] as unknown[])[offset] = item;
  }

  /** Puts the item before the one at `index`; at the end, where that is the length. */
  insert(index: number, item: unknown): void {
    const { piece, offset } = this.#find(index);
    const items = this.#pieces[piece];
    this.#length++;
    if (items === undefined) {
      const last = this.#pieces.at(-1);
      if (last === undefined || last.length >= pieceLength) this.#pieces.push([item]);
      else last.push(item);
      return;
    }
    items.splice(offset, 0, item);
    if (items.length >= 2 * pieceLength) this.#pieces.splice(piece + 1, 0, items.splice(pieceLength));
  }

  remove(index: number): void {
    const { piece, offset } = this.#find(index);
    const items = this.#pieces[piece] as unknown[];
    items.splice(offset, 1);
    this.#length--;
    if (items.length === 0) this.#pieces.splice(piece, 1);
  }

  toArray(): unknown[] {
    return this.#pieces.flat();
  }

  /** Where the item is; beyond the last piece for places beyond the last item. */
  #find(index: number): { readonly piece: number; readonly offset: number } {
    let offset = index;
    for (let piece = 0; piece < this.#pieces.length; piece++) {
      const { length } = this.#pieces[piece] as unknown[];
      if (offset < length) return { piece, offset };
      offset -= length;
    }
    return { piece: this.#pieces.length, offset };
  }
}
