/** Reading what flags of `longshore driver deploy` give as one text: pairs, tolerations, classes. */
import type { ClassOptions, TolerationOptions } from "@longshore/deployment";
import { UsageError } from "../exit.ts";

/** `key=value,key=value`. @throws UsageError */
export function parsePairs(flag: string, texts: readonly string[]): Readonly<Record<string, string>> {
  const pairs: Record<string, string> = {};
  for (const part of texts.flatMap((text) => text.split(","))) {
    const at = part.indexOf("=");
    const key = (at < 0 ? part : part.slice(0, at)).trim();
    if (at < 0 || key === "")
      throw new UsageError(`${flag}: "${part}" is not a pair: write key=value,key=value`);
    if (Object.hasOwn(pairs, key)) throw new UsageError(`${flag}: "${key}" is given twice: leave one out`);
    pairs[key] = part.slice(at + 1).trim();
  }
  return pairs;
}

/** `key=value:Effect`, `key:Effect` or `:Exists`, several joined by commas, as `kubectl taint` writes taints. @throws UsageError */
export function parseTolerations(flag: string, texts: readonly string[]): readonly TolerationOptions[] {
  return texts
    .flatMap((text) => text.split(","))
    .map((text) => {
      const part = text.trim();
      if (part === ":Exists") return { operator: "Exists" };
      const match = /^([^=:]+)(?:=([^:]*))?(?::([A-Za-z]+))?$/.exec(part);
      const key = match?.[1];
      if (match === null || key === undefined) {
        throw new UsageError(
          `${flag}: "${part}" is not a toleration: write key=value:NoSchedule, key:NoSchedule, or :Exists for every taint`,
        );
      }
      const [, , value, effect] = match;
      return {
        key,
        ...(value === undefined ? { operator: "Exists" as const } : { operator: "Equal" as const, value }),
        ...(effect === undefined ? {} : { effect }),
      };
    });
}

/** `name` or `name:key=value,key=value`. @throws UsageError */
export function parseClass(flag: string, text: string): ClassOptions {
  const at = text.indexOf(":");
  if (at < 0) return { name: text, parameters: {} };
  return { name: text.slice(0, at), parameters: parsePairs(flag, [text.slice(at + 1)]) };
}
