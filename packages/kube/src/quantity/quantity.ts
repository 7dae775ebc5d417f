/**
 * Quantities of the Kubernetes API: `10Gi`, `100m`, `1e3` (k8s.io/apimachinery/pkg/api/resource).
 *
 * As in the reference a quantity has one of two forms, and some answers depend on which: a small one
 * is an int64 times a power of ten and keeps the text it was read from; any other is a decimal with a
 * fixed number of places. What does not fit is cut to the largest value (binary suffixes), digits
 * below 10⁻⁹ are rounded up.
 */
import { parseQuantityText, type QuantityFormat, type QuantityParts, suffixOf } from "./quantity-text.ts";
import {
  type Checked,
  divideAwayFromZero,
  fitsInt64,
  maxInt64,
  removeFactors,
  scaleDown,
  scaleUp,
  wrapInt64,
} from "./scaled-int.ts";

export { QuantityError, type QuantityFormat } from "./quantity-text.ts";

/** `value × 10^exponent`; `small`: the int64 form. */
interface Amount {
  readonly small: boolean;
  readonly value: bigint;
  readonly exponent: number;
}

/** A quantity as it is written: `digits × base^exponent`. */
export interface CanonicalForm {
  readonly digits: string;
  readonly base: 2 | 10;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

/** A number with a unit. Values are immutable: `add` and `sub` return a new one. */
export class Quantity {
  readonly format: QuantityFormat;
  readonly #amount: Amount;
  /** The text it was parsed from, where the reference prints that text unchanged. */
  readonly #text: string | undefined;

  /** Use {@link parseQuantity} or {@link quantityOf}. */
  constructor(format: QuantityFormat, amount: Amount, text?: string) {
    this.format = format;
    this.#amount = amount;
    this.#text = text;
  }

  /** The exact number of whole units (bytes), rounded up (away from zero). Never cut to 64 bits. */
  toBytes(): bigint {
    const { value, exponent } = this.#amount;
    if (exponent >= 0) return value * 10n ** BigInt(exponent);
    return divideAwayFromZero(value, 10n ** BigInt(-exponent)).value;
  }

  /** -1, 0 or 1. */
  sign(): number {
    return this.#amount.value === 0n ? 0 : this.#amount.value < 0n ? -1 : 1;
  }

  isZero(): boolean {
    return this.#amount.value === 0n;
  }

  /** -1, 0 or 1, like a comparison function. */
  compare(other: Quantity): number {
    const [a, b] = aligned(this.#amount, other.#amount);
    return a === b ? 0 : a < b ? -1 : 1;
  }

  /** True when both mean the same number, even in different units. */
  equals(other: Quantity): boolean {
    return this.compare(other) === 0;
  }

  add(other: Quantity): Quantity {
    return new Quantity(this.#formatWith(other), sum(this.#amount, other.#amount));
  }

  sub(other: Quantity): Quantity {
    const negated = { ...other.#amount, value: -other.#amount.value };
    return new Quantity(this.#formatWith(other), sum(this.#amount, negated));
  }

  /** The whole number if it is one that fits and was written as one, as Go's `AsInt64`. */
  asInt64(): bigint | undefined {
    const { small, value, exponent } = this.#amount;
    if (!small || exponent < 0) return undefined;
    const scaled = scaleUp(value, exponent);
    return scaled.ok ? scaled.value : undefined;
  }

  /** The number in units of `10^scale`, rounded up, in the 64 bits of Go's `ScaledValue` (it overflows like it). */
  scaledValue(scale: number): bigint {
    const { small, value, exponent } = this.#amount;
    if (small) {
      return (exponent < scale ? scaleDown(value, scale - exponent) : scaleUp(value, exponent - scale)).value;
    }
    return scaledDecimal(value, -exponent, -scale);
  }

  /** Go's `Value`: whole units. Prefer {@link toBytes}, which never overflows. */
  value(): bigint {
    return this.scaledValue(0);
  }

  /** Go's `MilliValue`: thousandths. */
  milliValue(): bigint {
    return this.scaledValue(-3);
  }

  /** Rounded up (away from zero) to a multiple of `10^scale`, and whether nothing was lost. */
  roundUp(scale: number): { readonly quantity: Quantity; readonly exact: boolean } {
    if (this.#amount.small && this.#amount.exponent >= scale) return { quantity: this, exact: true };
    const { amount, exact } = rounded(this.#amount, scale);
    return { quantity: new Quantity(this.format, amount), exact };
  }

  /** The exact number, with as many places as it is kept with. */
  toDecimal(): string {
    const { value, exponent } = this.#amount;
    if (exponent >= 0) return value === 0n ? "0" : `${value}${"0".repeat(exponent)}`;
    const digits = (value < 0n ? -value : value).toString().padStart(1 - exponent, "0");
    return `${value < 0n ? "-" : ""}${digits.slice(0, exponent)}.${digits.slice(exponent)}`;
  }

  /** The form in which the API writes it back. */
  toString(): string {
    if (this.#text !== undefined) return this.#text;
    const { digits, base, exponent, format } = this.canonical();
    return digits === "0" ? "0" : `${digits}${suffixOf(base, exponent, format)}`;
  }

  /** The canonical form in its parts: `digits × base^exponent`. */
  canonical(): CanonicalForm {
    // As in the reference (CanonicalizeBytes): small amounts are decimal, which needs no rounding.
    if (this.format === "BinarySI" && !this.#isBelow1024()) {
      const whole = rounded(this.#amount, 0);
      if (whole.exact) return binaryForm(whole.amount);
    }
    return decimalForm(this.#amount, this.format === "DecimalExponent" ? "DecimalExponent" : "DecimalSI");
  }

  toJSON(): string {
    return this.toString();
  }

  #isBelow1024(): boolean {
    const limit = new Quantity("BinarySI", { small: true, value: 1024n, exponent: 0 });
    const negative = new Quantity("BinarySI", { small: true, value: -1024n, exponent: 0 });
    return this.compare(limit) < 0 && this.compare(negative) > 0;
  }

  #formatWith(other: Quantity): QuantityFormat {
    return this.isZero() ? other.format : this.format;
  }
}

/** Reads a quantity. @throws QuantityError for text that is none */
export function parseQuantity(text: string): Quantity {
  if (text === "0") return quantityOf(0n, "DecimalSI");
  const parts = parseQuantityText(text);
  const sign = parts.negative ? -1n : 1n;
  const precision = smallPrecision(parts.format, parts.exponent, parts.whole, parts.fraction);
  if (precision >= 0) {
    const exponent = (parts.base === 10 ? parts.exponent : 0) - parts.fraction.length;
    const factor = parts.base === 10 ? 1n : 1n << BigInt(parts.exponent);
    const value = BigInt(parts.whole + parts.fraction) * factor;
    if (exponent >= -9 && fitsInt64(value)) {
      const amount: Amount = { small: true, value: sign * value, exponent };
      return new Quantity(parts.format, amount, keepsItsText(parts) ? text : undefined);
    }
  }
  return parseLarge(parts, sign);
}

/** A whole number of units. */
export function quantityOf(value: bigint, format: QuantityFormat): Quantity {
  return new Quantity(format, { small: true, value, exponent: 0 });
}

/** The canonical binary form of a number of bytes, as provisioners write a PV's capacity. */
export function formatBytes(bytes: bigint): string {
  return quantityOf(bytes, "BinarySI").toString();
}

/**
 * True where the reference treats the text as canonical and prints it unchanged. Its check is quick
 * rather than exact: redundant zeros and points stay.
 */
function keepsItsText(parts: QuantityParts): boolean {
  const digits = parts.whole + parts.fraction;
  if (parts.base === 2) return BigInt(digits) % 8n !== 0n;
  const exponent = parts.exponent - parts.fraction.length;
  return exponent % 3 === 0 && !digits.endsWith("000") && !digits.startsWith("0");
}

/** Places left in an int64, by the reference's estimate; negative: too many, take the decimal form. */
function smallPrecision(format: QuantityFormat, exponent: number, whole: string, fraction: string): number {
  if (format !== "BinarySI") return 18 - whole.length - fraction.length;
  if (fraction !== "") return -1;
  return 15 - whole.length - Math.trunc((exponent * 3) / 10) - 1;
}

function parseLarge(parts: QuantityParts, sign: bigint): Quantity {
  let { format } = parts;
  const digits = BigInt(parts.digits);
  let amount: Amount = {
    small: false,
    value: parts.base === 2 ? digits << BigInt(parts.exponent) : digits,
    exponent: (parts.base === 10 ? parts.exponent : 0) - parts.fraction.length,
  };
  if (amount.value !== 0n) amount = rounded(amount, -9).amount;
  if (format === "BinarySI") {
    if (isAbove(amount, whole(maxInt64))) amount = whole(maxInt64);
    else if (isAbove(whole(1n), amount) && amount.value > 0n) format = "DecimalSI";
  }
  return new Quantity(format, { ...amount, value: sign * amount.value });
}

const whole = (value: bigint): Amount => ({ small: false, value, exponent: 0 });

/** Both values in units of the smaller exponent. */
function aligned(a: Amount, b: Amount): readonly [bigint, bigint] {
  const exponent = Math.min(a.exponent, b.exponent);
  return [a.value * 10n ** BigInt(a.exponent - exponent), b.value * 10n ** BigInt(b.exponent - exponent)];
}

function isAbove(a: Amount, b: Amount): boolean {
  const [x, y] = aligned(a, b);
  return x > y;
}

function sum(a: Amount, b: Amount): Amount {
  if (a.small && b.small) {
    if (b.value === 0n) return a;
    if (a.value === 0n) return b;
    const [x, y] = aligned(a, b);
    if (fitsInt64(x) && fitsInt64(y) && fitsInt64(x + y)) {
      return { small: true, value: x + y, exponent: Math.min(a.exponent, b.exponent) };
    }
  }
  const [x, y] = aligned(a, b);
  return { small: false, value: x + y, exponent: Math.min(a.exponent, b.exponent) };
}

function rounded(amount: Amount, scale: number): { readonly amount: Amount; readonly exact: boolean } {
  const { small, value, exponent } = amount;
  if (small && exponent >= scale) return { amount, exact: true };
  if (exponent >= scale) {
    return {
      amount: { small, value: value * 10n ** BigInt(exponent - scale), exponent: scale },
      exact: true,
    };
  }
  const divided: Checked = divideAwayFromZero(value, 10n ** BigInt(scale - exponent));
  return { amount: { small, value: divided.value, exponent: scale }, exact: divided.ok };
}

/** Go's `scaledValue`, with its truncation of the intermediate values. */
function scaledDecimal(unscaled: bigint, scale: number, newScale: number): bigint {
  const difference = scale - newScale;
  if (difference === 0) return wrapInt64(unscaled);
  if (difference < 0) {
    // Go's int64(math.Pow10(19)) does not fit, and is the smallest int64 on amd64.
    const factor = difference <= -19 ? -(2n ** 63n) : 10n ** BigInt(-difference);
    return wrapInt64(wrapInt64(unscaled) * factor);
  }
  const divisor = 10n ** BigInt(difference);
  if (unscaled < maxInt64 && difference < 19) {
    const low = wrapInt64(unscaled);
    return low / divisor + (low % divisor === 0n ? 0n : 1n);
  }
  let quotient = unscaled / divisor;
  // Go's DivMod leaves no negative remainder; a bigint division cuts toward zero.
  if (unscaled % divisor !== 0n && unscaled < 0n) quotient -= 1n;
  return wrapInt64(wrapInt64(quotient) + (unscaled % divisor === 0n ? 0n : 1n));
}

function decimalForm(amount: Amount, format: "DecimalSI" | "DecimalExponent"): CanonicalForm {
  const { rest, times } = removeFactors(amount.value, 10n);
  let exponent = amount.exponent + times;
  let value = rest;
  while (exponent % 3 !== 0) {
    value *= 10n;
    exponent--;
  }
  return { digits: value.toString(), base: 10, exponent, format };
}

function binaryForm(amount: Amount): CanonicalForm {
  const value = amount.value * 10n ** BigInt(amount.exponent);
  const { rest, times } = removeFactors(value, 1024n);
  return { digits: rest.toString(), base: 2, exponent: times * 10, format: "BinarySI" };
}
