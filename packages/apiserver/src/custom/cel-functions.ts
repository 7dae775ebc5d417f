/** The functions that Kubernetes adds to CEL (apiserver pkg/cel/library), as far as the library does not have them. */
import { parseQuantity, type Quantity } from "@longshore/kube/basics";
import type { Environment } from "@marcbachmann/cel-js";
import { patternGroups } from "./pattern.ts";

/** The same environment, with the functions. */
export function registerFunctions(environment: Environment): Environment {
  registerTexts(environment);
  registerLists(environment);
  registerQuantities(environment);
  registerUrls(environment);
  return environment;
}

function registerTexts(environment: Environment): void {
  environment
    .registerFunction("string.charAt(int): string", (text: string, at: bigint) => [...text][Number(at)] ?? "")
    .registerFunction("string.replace(string, string): string", (text: string, from: string, to: string) =>
      text.split(from).join(to),
    )
    .registerFunction(
      "string.replace(string, string, int): string",
      (text: string, from: string, to: string, count: bigint) => {
        const parts = text.split(from);
        const most = count < 0n ? parts.length : Number(count);
        return parts
          .slice(1)
          .reduce((done, part, i) => `${done}${i < most ? to : from}${part}`, parts[0] ?? "");
      },
    )
    .registerFunction("string.reverse(): string", (text: string) => [...text].reverse().join(""))
    .registerFunction(
      "string.find(string): string",
      (text: string, pattern: string) => patternGroups(pattern, text, 1)[0] ?? "",
    )
    .registerFunction("string.findAll(string): list<string>", (text: string, pattern: string) => [
      ...patternGroups(pattern, text, Number.POSITIVE_INFINITY),
    ])
    .registerFunction(
      "string.findAll(string, int): list<string>",
      (text: string, pattern: string, n: bigint) => [
        ...patternGroups(pattern, text, n < 0n ? Number.POSITIVE_INFINITY : Number(n)),
      ],
    );
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

function quantityOf(text: string): Quantity | undefined {
  try {
    return parseQuantity(text);
  } catch {
    return undefined;
  }
}

function registerQuantities(environment: Environment): void {
  const order = (a: CelQuantity, b: CelQuantity) => a.value.compare(b.value);
  environment
    .registerType("Quantity", CelQuantity)
    .registerFunction("isQuantity(string): bool", (text: string) => quantityOf(text) !== undefined)
    .registerFunction("quantity(string): Quantity", (text: string) => {
      const value = quantityOf(text);
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
