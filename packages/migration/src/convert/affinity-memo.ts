/**
 * The node affinities met last. A cluster has thousands of volumes and a handful of zones, so most affinities have been
 * parsed, and written with other keys, before.
 */

import { member } from "./kube-object.ts";

const ENTRIES_MAX = 256;
/** Longer texts seldom come twice, and are not kept. */
const LENGTH_MAX = 2048;

/** An affinity as it was read. */
export interface KnownAffinity {
  /** Shared: must not be changed. */
  readonly value: unknown;
  /** The rename that came last, and the text with it; there is one for each driver. */
  rename: RenamedKey | undefined;
  renamed: string;
}

/** Node affinities by their text. */
export class AffinityMemo {
  readonly #known = new Map<string, KnownAffinity>();

  /** The affinity that `text` holds. */
  parse(text: string): KnownAffinity {
    const found = this.#known.get(text);
    if (found !== undefined) return found;
    const known: KnownAffinity = { value: JSON.parse(text), rename: undefined, renamed: "" };
    if (text.length > LENGTH_MAX) return known;
    // No order of use is kept: a cluster has far fewer affinities than fit.
    if (this.#known.size >= ENTRIES_MAX) this.#known.clear();
    this.#known.set(text, known);
    return known;
  }
}

/** The text of `after`, which a translation made of the affinity `known`. */
export function writtenAffinity(known: KnownAffinity, after: unknown): string {
  const rename = renamedKey(known.value, after);
  if (rename === undefined) return JSON.stringify(after);
  const last = known.rename;
  if (last?.from !== rename.from || last.to !== rename.to || last.count !== rename.count) {
    known.rename = rename;
    known.renamed = JSON.stringify(after);
  }
  return known.renamed;
}

/** One key under another name in so many requirements of a node affinity. */
interface RenamedKey {
  readonly from: string;
  readonly to: string;
  readonly count: number;
}

/**
 * The rename that is all the difference between two node affinities. What they share is known to be equal, and a
 * translation renames a key wherever it stands, so the two names are the whole difference.
 */
function renamedKey(before: unknown, after: unknown): RenamedKey | undefined {
  const termsBefore = member(before, "required", "nodeSelectorTerms");
  const termsAfter = member(after, "required", "nodeSelectorTerms");
  if (!Array.isArray(termsBefore) || !Array.isArray(termsAfter) || termsBefore.length !== termsAfter.length) {
    return undefined;
  }
  let rename: { from: string; to: string; count: number } | undefined;
  for (let i = 0; i < termsBefore.length; i++) {
    if (termsBefore[i] === termsAfter[i]) continue;
    const [expressions, changed] = [termsBefore[i]?.matchExpressions, termsAfter[i]?.matchExpressions];
    if (!Array.isArray(expressions) || expressions.length !== changed?.length) return undefined;
    for (let j = 0; j < expressions.length; j++) {
      if (expressions[j] === changed[j]) continue;
      const { key: from, values } = expressions[j];
      const { key: to } = changed[j];
      rename ??= { from, to, count: 0 };
      if (values !== changed[j].values || from !== rename.from || to !== rename.to) return undefined;
      rename.count += 1;
    }
  }
  return rename;
}
