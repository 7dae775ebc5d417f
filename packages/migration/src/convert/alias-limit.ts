/**
 * A limit of what aliases may make of a YAML document. A few hundred bytes of anchors and aliases stand for gigabytes
 * once they are written out; kubectl refuses such documents, by the rule of go-yaml (decode.go, `allowedAliasRatio`).
 */

/** Up to so many nodes no document is refused. */
const ANY_RATIO_MAX = 1000;
const ALIASED_MIN = 100;
/** Between these two the share of aliased nodes that is allowed falls from {@link HIGH_RATIO} to {@link LOW_RATIO}. */
const RATIO_RANGE_LOW = 400_000;
const RATIO_RANGE_HIGH = 4_000_000;
const HIGH_RATIO = 0.99;
const LOW_RATIO = 0.1;

/**
 * True when most of `value`, written out, would be repetitions of the same parts, or when it holds itself. Costs time
 * in proportion to the parts that there are, not to what they stand for.
 */
export function hasExcessiveAliases(value: unknown): boolean {
  const sizes = new Map<object, number>();
  const total = sizeOf(value, sizes);
  let distinct = 1;
  for (const part of sizes.keys()) distinct += Object.keys(part).length;
  const aliased = total - distinct;
  // Negated for a document that holds itself: both sizes are infinite there, and their ratio is NaN.
  return aliased > ALIASED_MIN && total > ANY_RATIO_MAX && !(aliased / total <= allowedRatio(total));
}

function allowedRatio(total: number): number {
  if (total <= RATIO_RANGE_LOW) return HIGH_RATIO;
  if (total >= RATIO_RANGE_HIGH) return LOW_RATIO;
  const share = (total - RATIO_RANGE_LOW) / (RATIO_RANGE_HIGH - RATIO_RANGE_LOW);
  return HIGH_RATIO - (HIGH_RATIO - LOW_RATIO) * share;
}

/** The nodes that `value` has when written out; without end for one that holds itself. The parser bounds the depth. */
function sizeOf(value: unknown, sizes: Map<object, number>): number {
  if (typeof value !== "object" || value === null) return 1;
  const known = sizes.get(value);
  if (known !== undefined) return known;
  sizes.set(value, Number.POSITIVE_INFINITY);
  let size = 1;
  for (const part of Object.values(value)) size += sizeOf(part, sizes);
  sizes.set(value, size);
  return size;
}
