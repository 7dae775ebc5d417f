/**
 * What expressions cost, in the units of Kubernetes: about a tenth of a microsecond each. Every operation is paid
 * before it is done, by the size of what it reads and makes, so that neither time nor memory can run away
 * (cel-go interpreter/runtimecost.go, apiserver pkg/cel/library/cost.go). Where JavaScript copies and Go shares, or
 * its patterns are slower, the price is higher than there.
 */

/** Most that one evaluation of an expression may cost (apiserver pkg/apis/cel/config.go, PerCallLimit). */
export const callCostMax = 1_000_000;

/** Most that all rules of one object may cost (RuntimeCELCostBudget). */
export const objectCostMax = 10_000_000;

/** An evaluation has cost more than it may. */
export class CelCostError extends Error {
  override readonly name = "CelCostError";
  constructor() {
    super("operation cancelled: actual cost limit exceeded");
  }
}

/** Counts what one evaluation costs. */
export class CostMeter {
  readonly #limit: number;
  /** One for all: loops that are left may each throw it again. */
  readonly #error = new CelCostError();
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** True from the charge on that went over the limit: an expression may have caught the error, as `||` does. */
  get isExceeded(): boolean {
    return this.#used > this.#limit;
  }

  /** @throws CelCostError when it is more than is left; the operation must not be done */
  charge(cost: number): void {
    this.#used += cost;
    if (this.#used > this.#limit) throw this.#error;
  }
}

/** Cost of a character that is read or written (common.StringTraversalCostFactor). */
const traversal = 0.1;

/** Cost of an item that is copied from one list to another. */
const itemCopy = 1;

/** Cost of a comparison of two values. */
const comparison = 0.3;

/** Characters, bytes, items or members; 1 for what has no size. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string" || Array.isArray(value) || value instanceof Uint8Array) return value.length;
  if (value instanceof Map) return value.size;
  return isPlainObject(value) ? Object.keys(value).length : 1;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Going through the text once. */
export function scanCost(text: unknown): number {
  return 1 + sizeOf(text) * traversal;
}

/** Looking for one text in another. */
export function searchCost(text: unknown, wanted: unknown): number {
  const both = Math.ceil(sizeOf(text) * traversal) * Math.ceil(sizeOf(wanted) * traversal);
  return 1 + both;
}

/**
 * Pays for a comparison while it goes as far as the comparison will: values can share parts, and be exponentially
 * larger than what they are made of. True when they are equal, as far as the price depends on it.
 */
export function chargeComparison(meter: CostMeter, a: unknown, b: unknown): boolean {
  meter.charge(comparison);
  if (a === b && typeof a !== "object") return true;
  if (typeof a === "string" && typeof b === "string") {
    if (a.length === b.length) meter.charge(a.length * traversal);
    return a === b;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a === b) return true;
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    meter.charge(Math.min(sizeOf(a), sizeOf(b)) * traversal);
    return true;
  }
  if (sizeOf(a) !== sizeOf(b)) return false;
  if (Array.isArray(a)) return Array.isArray(b) && a.every((item, i) => chargeComparison(meter, item, b[i]));
  const read = memberReader(b);
  for (const [key, member] of membersOf(a)) {
    if (!chargeComparison(meter, member, read(key))) return false;
  }
  return true;
}

function membersOf(value: object): Iterable<readonly [unknown, unknown]> {
  if (value instanceof Map) return value;
  return isPlainObject(value) ? Object.entries(value) : [];
}

function memberReader(value: object): (key: unknown) => unknown {
  if (value instanceof Map) return (key) => value.get(key);
  return (key) =>
    Object.hasOwn(value, String(key)) ? (value as Record<string, unknown>)[String(key)] : undefined;
}

/** Pays for the comparison of a value with each item of a list. */
export function chargeMembership(meter: CostMeter, item: unknown, list: readonly unknown[]): void {
  meter.charge(1);
  for (const one of list) if (chargeComparison(meter, item, one)) return;
}

/** Pays for `a op b`. */
export function chargeOperator(meter: CostMeter, operator: string, a: unknown, b: unknown): void {
  meter.charge(1);
  switch (operator) {
    case "==":
    case "!=":
      chargeComparison(meter, a, b);
      return;
    case "in":
      if (Array.isArray(b)) chargeMembership(meter, a, b);
      return;
    case "+":
      if (Array.isArray(a) && Array.isArray(b)) meter.charge((a.length + b.length) * itemCopy);
      else meter.charge((sizeOf(a) + sizeOf(b)) * traversal);
      return;
    default:
      meter.charge(Math.min(sizeOf(a), sizeOf(b)) * traversal);
  }
}

/** Pays for a comprehension over the value to begin: what is no list is made one. */
export function chargeRange(meter: CostMeter, range: unknown): void {
  meter.charge(1);
  if (!Array.isArray(range)) meter.charge(sizeOf(range));
}

type Charge = (meter: CostMeter, args: readonly unknown[]) => void;

const nominal: Charge = (meter) => meter.charge(1);
const scan: Charge = (meter, [text]) => meter.charge(scanCost(text));
/** A function of ours pays itself, as it knows what it does. */
const paysItself: Charge = () => {};

/** A time zone is worked out by formatting the date. */
const timeGetter: Charge = (meter, args) => meter.charge(args.length > 1 ? 1000 : 3);

const url: Charge = (meter, [text]) => meter.charge(20 + 5 * scanCost(text));

const durationForm = /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;

/** The library tries all ways of reading what is none: it is not asked. */
const duration: Charge = (meter, [text]) => {
  meter.charge(20 + scanCost(text));
  if (typeof text === "string" && (text.length > 100 || !durationForm.test(text))) {
    throw new Error("invalid duration");
  }
};

const split: Charge = (meter, [text = "", separator = ""]) => {
  meter.charge(2 * scanCost(text));
  if (typeof text === "string" && typeof separator === "string") {
    meter.charge(partsOf(meter, text, separator) / 2);
  }
};

/** Into how many parts the separator divides the text; looking for it is paid. */
export function partsOf(meter: CostMeter, text: string, separator: string): number {
  if (separator === "") return text.length;
  meter.charge(searchCost(text, separator));
  let parts = 1;
  for (let at = text.indexOf(separator); at >= 0; at = text.indexOf(separator, at + separator.length))
    parts++;
  return parts;
}

const join: Charge = (meter, [list, separator = ""]) => {
  if (!Array.isArray(list)) return;
  meter.charge(1 + list.length * itemCopy);
  let length = list.length * sizeOf(separator);
  for (const item of list) length += sizeOf(item);
  meter.charge(2 * length * traversal);
};

/** `indexOf` and the like, of texts and of lists. */
const search: Charge = (meter, [within, wanted]) => {
  if (Array.isArray(within)) for (const item of within) chargeComparison(meter, item, wanted);
  else meter.charge(searchCost(within, wanted));
};

/** Functions that order the items of a list, or add them up. */
const eachItem: Charge = (meter, [list]) => {
  meter.charge(1);
  if (!Array.isArray(list)) return;
  for (const item of list) {
    // JavaScript would compare them as texts.
    if (Array.isArray(item) || item instanceof Map) throw new Error("no such overload");
    meter.charge(1 + (typeof item === "string" ? item.length * traversal : 0));
  }
};

const times = [
  "Date",
  "DayOfMonth",
  "DayOfWeek",
  "DayOfYear",
  "FullYear",
  "Hours",
  "Milliseconds",
  "Minutes",
];

/** The functions that expressions may call, with their price. There are no others. */
export const functionCosts: ReadonlyMap<string, Charge> = new Map<string, Charge>([
  ...["type", "dyn"].map((name) => [name, nominal] as const),
  ...["size", "bool", "bytes", "double", "int", "uint", "string", "timestamp"].map(
    (name) => [name, scan] as const,
  ),
  ["duration", duration],
  ...["isQuantity", "quantity"].map((name) => [name, paysItself] as const),
  ...["isURL", "url"].map((name) => [name, url] as const),
]);

/** The functions that expressions may call of a value, with their price. There are no others. */
export const methodCosts: ReadonlyMap<string, Charge> = new Map<string, Charge>([
  ...["size", "startsWith", "endsWith", "lowerAscii", "upperAscii", "trim", "substring"].map(
    (name) => [name, scan] as const,
  ),
  ...["contains", "indexOf", "lastIndexOf"].map((name) => [name, search] as const),
  ...["isSorted", "sum", "min", "max"].map((name) => [name, eachItem] as const),
  ["split", split],
  ["join", join],
  ...["matches", "find", "findAll", "replace", "reverse", "charAt"].map(
    (name) => [name, paysItself] as const,
  ),
  ...[...times, "Seconds"].map((name) => [`get${name}`, timeGetter] as const),
  ...["isGreaterThan", "isLessThan", "compareTo"].map(
    (name) => [name, ((meter) => meter.charge(20)) as Charge] as const,
  ),
  ...["getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"].map(
    (name) => [name, nominal] as const,
  ),
  ...["hasValue", "value", "or", "orValue", "none", "of"].map((name) => [name, nominal] as const),
]);
