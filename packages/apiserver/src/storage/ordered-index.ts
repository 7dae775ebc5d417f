/**
 * Keys in order, each with a value: pieces of bounded length, so that a change moves a few hundred
 * places at most, whatever the number of keys, and a page begins without a walk to its place.
 */

/** Most keys of a piece; one that grows beyond is cut in two. */
const pieceMax = 512;

interface Piece<V> {
  readonly keys: string[];
  readonly values: V[];
}

/** A place: the piece, and the index in it. */
interface Place {
  readonly piece: number;
  readonly at: number;
}

/** An ordered map. Keys are ordered by their UTF-16 units. */
export class OrderedIndex<V> {
  readonly #pieces: Piece<V>[] = [];
  #size = 0;

  /** Keys in the index. */
  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    const { piece, at } = this.#find(key);
    const found = this.#pieces[piece];
    return found?.keys[at] === key ? found.values[at] : undefined;
  }

  /** Sets the value of a key. Returns the value that it replaces. */
  set(key: string, value: V): V | undefined {
    const place = this.#find(key);
    const piece = this.#pieces[place.piece] ?? this.#addPiece();
    if (piece.keys[place.at] === key) {
      const before = piece.values[place.at];
      piece.values[place.at] = value;
      return before;
    }
    piece.keys.splice(place.at, 0, key);
    piece.values.splice(place.at, 0, value);
    this.#size++;
    if (piece.keys.length > pieceMax) this.#cut(place.piece);
    return undefined;
  }

  /** Removes a key. Returns its value. */
  delete(key: string): V | undefined {
    const place = this.#find(key);
    const piece = this.#pieces[place.piece];
    if (piece === undefined || piece.keys[place.at] !== key) return undefined;
    piece.keys.splice(place.at, 1);
    const [value] = piece.values.splice(place.at, 1);
    this.#size--;
    if (piece.keys.length === 0) this.#pieces.splice(place.piece, 1);
    return value;
  }

  /** Number of keys before `key`. */
  rank(key: string): number {
    const { piece, at } = this.#find(key);
    let count = at;
    for (let i = 0; i < piece; i++) count += (this.#pieces[i] as Piece<V>).keys.length;
    return count;
  }

  /** Calls `visit` for the keys from `from` (inclusive) to `end` (exclusive) in order, until it returns false. */
  scan(from: string, end: string | undefined, visit: (key: string, value: V) => boolean): void {
    const start = this.#find(from);
    for (let i = start.piece; i < this.#pieces.length; i++) {
      const { keys, values } = this.#pieces[i] as Piece<V>;
      for (let at = i === start.piece ? start.at : 0; at < keys.length; at++) {
        const key = keys[at] as string;
        if (end !== undefined && key >= end) return;
        if (!visit(key, values[at] as V)) return;
      }
    }
  }

  /** Place of the first key that is not before `key`: in its piece, or behind the last one's end. */
  #find(key: string): Place {
    let low = 0;
    let high = this.#pieces.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { keys } = this.#pieces[middle] as Piece<V>;
      if ((keys[keys.length - 1] as string) < key) low = middle + 1;
      else high = middle;
    }
    const keys = this.#pieces[low]?.keys ?? [];
    let first = 0;
    let last = keys.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if ((keys[middle] as string) < key) first = middle + 1;
      else last = middle;
    }
    return { piece: low, at: first };
  }

  #addPiece(): Piece<V> {
    const piece: Piece<V> = { keys: [], values: [] };
    this.#pieces.push(piece);
    return piece;
  }

  #cut(index: number): void {
    const { keys, values } = this.#pieces[index] as Piece<V>;
    // Keys that come in order leave full pieces behind them.
    const at = index === this.#pieces.length - 1 ? keys.length - 1 : keys.length >> 1;
    this.#pieces.splice(index + 1, 0, { keys: keys.splice(at), values: values.splice(at) });
  }
}
