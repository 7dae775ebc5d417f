/** The text of a quantity taken apart: sign, digits, suffix (k8s.io/apimachinery/pkg/api/resource). */

/** How a quantity is written: with k, M, G; with Ki, Mi, Gi; with e3, e6, e9. */
export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/** A text is not a quantity. */
export class QuantityError extends Error {
  override readonly name = "QuantityError";
  constructor(text: string, problem: string) {
    super(`"${text}" is not a quantity: ${problem}; write a number and a unit, such as 10Gi, 500M or 100m`);
  }
}

/** The parts of a quantity: `digits × 10^-fraction.length × base^exponent`. */
export interface QuantityParts {
  readonly negative: boolean;
  /** Digits before the point without leading zeros; at least "0". */
  readonly whole: string;
  /** Digits after the point. */
  readonly fraction: string;
  /** All digits, leading zeros included. */
  readonly digits: string;
  readonly base: 2 | 10;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

const decimalSuffixes: ReadonlyMap<string, number> = new Map([
  ["n", -9],
  ["u", -6],
  ["m", -3],
  ["", 0],
  ["k", 3],
  ["M", 6],
  ["G", 9],
  ["T", 12],
  ["P", 15],
  ["E", 18],
]);
const binarySuffixes: ReadonlyMap<string, number> = new Map([
  ["", 0],
  ["Ki", 10],
  ["Mi", 20],
  ["Gi", 30],
  ["Ti", 40],
  ["Pi", 50],
  ["Ei", 60],
]);

/** No machine has such an amount; a larger exponent would only cost memory. */
const EXPONENT_MAX = 1000;

/** Longest text of a quantity: numbers of millions of digits take seconds to convert. */
const lengthMax = 1000;

/** Takes the text apart. @throws QuantityError */
export function parseQuantityText(text: string): QuantityParts {
  if (text.length > lengthMax) {
    throw new QuantityError(`${text.slice(0, 20)}…`, `it is longer than ${lengthMax} characters`);
  }
  const match = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*(?:[-+]?[0-9]*))$/.exec(text);
  if (text === "" || match === null) {
    throw new QuantityError(text, "it must be a decimal number with an optional suffix");
  }
  const [, sign = "", leading = "", fraction = "", suffix = ""] = match;
  const unit = interpretSuffix(suffix);
  if (unit === undefined) throw new QuantityError(text, `the suffix "${suffix}" is unknown`);
  if (Math.abs(unit.exponent) > EXPONENT_MAX) throw new QuantityError(text, "the exponent is too large");
  return {
    negative: sign === "-",
    whole: leading.replace(/^0+/, "") || "0",
    fraction,
    digits: leading + fraction,
    ...unit,
  };
}

function interpretSuffix(suffix: string): Pick<QuantityParts, "base" | "exponent" | "format"> | undefined {
  const decimal = decimalSuffixes.get(suffix);
  if (decimal !== undefined) return { base: 10, exponent: decimal, format: "DecimalSI" };
  const binary = binarySuffixes.get(suffix);
  if (binary !== undefined) return { base: 2, exponent: binary, format: "BinarySI" };
  if (!/^[eE][-+]?[0-9]+$/.test(suffix)) return undefined;
  return { base: 10, exponent: Number(suffix.slice(1)), format: "DecimalExponent" };
}

/** The suffix for `base^exponent`. Beyond E (10^18) there is only the exponent form; without it the value would be lost. */
export function suffixOf(base: 2 | 10, exponent: number, format: QuantityFormat): string {
  if (format === "DecimalExponent") return exponent === 0 ? "" : `e${exponent}`;
  const table = base === 2 ? binarySuffixes : decimalSuffixes;
  for (const [suffix, power] of table) if (power === exponent) return suffix;
  return `e${exponent}`;
}
