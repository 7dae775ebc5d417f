/** Reading the values of flags. */
import { UsageError } from "./exit.ts";

/** The number that the flag's text stands for. @throws UsageError when it is none from `least` to `most` */
export function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new UsageError(`${flag}: "${text}" is not a whole number from ${least} to ${most}`);
}
