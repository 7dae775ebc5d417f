/**
 * 64-bit arithmetic on numbers with a power of ten, as the reference does it: what does not fit is
 * reported, and where the reference lets a product wrap around, so does this.
 */

/** The greatest int64. */
export const maxInt64 = 2n ** 63n - 1n;
/** The least int64. */
export const minInt64 = -(2n ** 63n);

/** Low 64 bits, read as a signed number. */
export const wrapInt64 = (value: bigint): bigint => BigInt.asIntN(64, value);

/** True for a number that an int64 can hold. */
export const fitsInt64 = (value: bigint): boolean => value >= minInt64 && value <= maxInt64;

/** A result and whether it is exact (or did not overflow). */
export interface Checked {
  readonly value: bigint;
  readonly ok: boolean;
}

const multiply = (a: bigint, b: bigint): Checked => {
  if (a === minInt64 && b !== 1n && b !== 0n) return { value: 0n, ok: false };
  return { value: wrapInt64(a * b), ok: fitsInt64(a * b) };
};

/** `base × 10^scale` for `scale ≥ 0`. On overflow, scales that the reference multiplies at once wrap; others are 0. */
export function scaleUp(base: bigint, scale: number): Checked {
  if (scale === 0) return { value: base, ok: true };
  const product = multiply(base, 10n ** BigInt(Math.min(scale, 64)));
  if (product.ok) return product;
  return [1, 2, 3, 6, 9].includes(scale) ? product : { value: 0n, ok: false };
}

/** `base ÷ 10^scale` rounded away from zero, for `scale ≥ 0`; `ok` when nothing was lost. */
export function scaleDown(base: bigint, scale: number): Checked {
  return divideAwayFromZero(base, 10n ** BigInt(Math.min(scale, 64)));
}

/** The quotient rounded away from zero; `ok` when there is no remainder. */
export function divideAwayFromZero(dividend: bigint, divisor: bigint): Checked {
  const quotient = dividend / divisor;
  if (quotient * divisor === dividend) return { value: quotient, ok: true };
  return { value: dividend > 0n ? quotient + 1n : quotient - 1n, ok: false };
}

/** Takes out every factor `base`, and says how many there were. */
export function removeFactors(
  value: bigint,
  base: bigint,
): { readonly rest: bigint; readonly times: number } {
  let rest = value;
  let times = 0;
  while (rest !== 0n && rest % base === 0n) {
    rest /= base;
    times++;
  }
  return { rest, times };
}
