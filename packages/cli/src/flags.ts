/** Reading the values of flags. */
import { UsageError } from "./exit.ts";

/** The number that the flag's text stands for. @throws UsageError when it is none from `least` to `most` */
export function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new UsageError(`${flag}: "${text}" is not a whole number from ${least} to ${most}`);
}

/** Milliseconds. A number alone is of seconds. */
export function duration(flag: string, text: string): number {
  const factors: Readonly<Record<string, number>> = { ms: 1, s: 1000, "": 1000, m: 60_000, h: 3_600_000 };
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const ms = Number(number) * (factors[unit] ?? 1000);
  // A timer takes no more than 2^31 - 1 ms.
  if (number !== "" && ms >= 1 && ms <= 24 * 3_600_000) return ms;
  throw new UsageError(`${flag}: "${text}" is not a duration of up to a day: write 500ms, 30s or 2m`);
}

/** Collects the values of a flag that may be given several times. */
export const repeated = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
];
