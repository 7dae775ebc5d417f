/** The functions that Kubernetes adds to CEL (apiserver pkg/cel/library), as far as the library does not have them. */
import { parseQuantity, type Quantity } from "@longshore/kube/basics";
import type { Environment } from "@marcbachmann/cel-js";
import { partsOf, scanCost } from "./cel-cost.ts";
import type { Metering } from "./cel-metering.ts";
import { patternFinds, patternMatches, patternProblem, patternSteps } from "./pattern-matches.ts";

/** Longest text of a quantity; with more digits, arithmetic would take its time. */
const numberTextMax = 200;

/** The same environment, with the functions, which pay with `metering`. */
export function registerFunctions(environment: Environment, metering: Metering): Environment {
  registerTexts(environment, metering);
  registerPatterns(environment, metering);
  registerLists(environment);
  registerQuantities(environment, metering);
  registerUrls(environment);
  return environment;
}

const sync = { async: false };

/** The functions of the library in whose place we have our own, by the names that ours have. */
export const ourNames: ReadonlyMap<string, string> = new Map([["matches", "matchesRe2"]]);

function registerTexts(environment: Environment, metering: Metering): void {
  /** Pays for the replacement of at most `most` before it is made. */
  const replaced = (text: string, from: string, to: string, most: number) => {
    const { meter } = metering;
    meter.charge(2 * scanCost(text));
    const count = Math.min(partsOf(meter, text, from), most);
    meter.charge(count / 2 + scanCost(text) + (count * to.length) / 5);
    const parts = text.split(from);
    if (parts.length - 1 <= most) return parts.join(to);
    return [parts.slice(0, most + 1).join(to), ...parts.slice(most + 1)].join(from);
  };
  environment
    .registerFunction(
      "string.charAt(int): string",
      (text: string, at: bigint) => {
        metering.meter.charge(scanCost(text));
        let i = 0n;
        for (const character of text) if (i++ === at) return character;
        return "";
      },
      sync,
    )
    .registerFunction(
      "string.replace(string, string): string",
      (text: string, from: string, to: string) => replaced(text, from, to, Number.POSITIVE_INFINITY),
      sync,
    )
    .registerFunction(
      "string.replace(string, string, int): string",
      (text: string, from: string, to: string, count: bigint) =>
        replaced(text, from, to, count < 0n ? Number.POSITIVE_INFINITY : Number(count)),
      sync,
    )
    .registerFunction(
      "string.reverse(): string",
      (text: string) => {
        metering.meter.charge(1 + text.length / 2);
        return [...text].reverse().join("");
      },
      sync,
    );
}

function registerPatterns(environment: Environment, metering: Metering): void {
  const finds = (text: string, pattern: string, most: number) => {
    makeReady(pattern, metering);
    const found: string[] = [];
    if (most <= 0) return found;
    const pay = (length: number) => metering.meter.charge(matchCost(pattern, length));
    for (const one of patternFinds(pattern, text, pay)) {
      found.push(one);
      if (found.length >= most) break;
    }
    return found;
  };
  environment
    .registerFunction(
      `string.${ourNames.get("matches")}(string): bool`,
      (text: string, pattern: string) => {
        makeReady(pattern, metering);
        metering.meter.charge(matchCost(pattern, text.length));
        return patternMatches(pattern, text);
      },
      sync,
    )
    .registerFunction(
      "string.find(string): string",
      (text: string, pattern: string) => finds(text, pattern, 1)[0] ?? "",
      sync,
    )
    .registerFunction(
      "string.findAll(string): list<string>",
      (text: string, pattern: string) => finds(text, pattern, Number.POSITIVE_INFINITY),
      sync,
    )
    .registerFunction(
      "string.findAll(string, int): list<string>",
      (text: string, pattern: string, n: bigint) =>
        finds(text, pattern, n < 0n ? Number.POSITIVE_INFINITY : Number(n)),
      sync,
    );
}

/** Pays for the pattern to be compiled, where it is not yet. @throws Error when it is none */
function makeReady(pattern: string, { meter }: Metering): void {
  meter.charge(scanCost(pattern));
  const problem = patternProblem(pattern, (size) => meter.charge(size * 20));
  if (problem !== undefined) throw new Error(problem);
}

/** Holding so many characters to the pattern: ours takes a step for each of its parts and each character. */
function matchCost(pattern: string, length: number): number {
  return 1 + patternSteps(pattern, length) / 10;
}

type Ordered = bigint | number | string;

function registerLists(environment: Environment): void {
  environment
    .registerFunction("list.isSorted(): bool", (list: readonly Ordered[]) =>
      list.every((item, i) => i === 0 || (list[i - 1] as Ordered) <= item),
    )
    .registerFunction("list.sum(): dyn", (list: readonly (bigint | number)[]) =>
      list.reduce<bigint | number>(
        (sum, item) =>
          typeof sum === "bigint" && typeof item === "bigint" ? sum + item : Number(sum) + Number(item),
        typeof list[0] === "number" ? 0 : 0n,
      ),
    )
    .registerFunction("list.min(): dyn", (list: readonly Ordered[]) => extreme(list, "min", (a, b) => a < b))
    .registerFunction("list.max(): dyn", (list: readonly Ordered[]) => extreme(list, "max", (a, b) => a > b))
    .registerFunction("list.indexOf(dyn): int", (list: readonly unknown[], item: unknown) =>
      BigInt(list.indexOf(item)),
    )
    .registerFunction("list.lastIndexOf(dyn): int", (list: readonly unknown[], item: unknown) =>
      BigInt(list.lastIndexOf(item)),
    );
}

function extreme(
  list: readonly Ordered[],
  name: string,
  better: (a: Ordered, b: Ordered) => boolean,
): Ordered {
  const [first] = list;
  if (first === undefined) throw new Error(`${name} called on empty list`);
  return list.reduce((best, item) => (better(item, best) ? item : best), first);
}

/** A quantity as a value of CEL. */
class CelQuantity {
  readonly value: Quantity;

  constructor(value: Quantity) {
    this.value = value;
  }
}

function quantityOf(text: string, { meter }: Metering): Quantity | undefined {
  if (text.length > numberTextMax) return undefined;
  meter.charge(5 + 2 * text.length);
  try {
    return parseQuantity(text);
  } catch {
    return undefined;
  }
}

function registerQuantities(environment: Environment, metering: Metering): void {
  const order = (a: CelQuantity, b: CelQuantity) => a.value.compare(b.value);
  environment
    .registerType("Quantity", CelQuantity)
    .registerFunction("isQuantity(string): bool", (text: string) => quantityOf(text, metering) !== undefined)
    .registerFunction("quantity(string): Quantity", (text: string) => {
      const value = quantityOf(text, metering);
      if (value === undefined) {
        throw new Error(
          "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        );
      }
      return new CelQuantity(value);
    })
    .registerFunction(
      "Quantity.isGreaterThan(Quantity): bool",
      (a: CelQuantity, b: CelQuantity) => order(a, b) > 0,
    )
    .registerFunction(
      "Quantity.isLessThan(Quantity): bool",
      (a: CelQuantity, b: CelQuantity) => order(a, b) < 0,
    )
    .registerFunction("Quantity.compareTo(Quantity): int", (a: CelQuantity, b: CelQuantity) =>
      BigInt(Math.sign(order(a, b))),
    );
}

/** A URL as a value of CEL. */
class CelUrl {
  readonly value: URL;

  constructor(value: URL) {
    this.value = value;
  }
}

function registerUrls(environment: Environment): void {
  environment
    .registerType("URL", CelUrl)
    .registerFunction("isURL(string): bool", (text: string) => URL.canParse(text))
    .registerFunction("url(string): URL", (text: string) => new CelUrl(new URL(text)))
    .registerFunction("URL.getScheme(): string", ({ value }: CelUrl) => value.protocol.replace(/:$/, ""))
    .registerFunction("URL.getHost(): string", ({ value }: CelUrl) => value.host)
    .registerFunction("URL.getHostname(): string", ({ value }: CelUrl) => value.hostname)
    .registerFunction("URL.getPort(): string", ({ value }: CelUrl) => value.port)
    .registerFunction("URL.getEscapedPath(): string", ({ value }: CelUrl) => value.pathname);
}
