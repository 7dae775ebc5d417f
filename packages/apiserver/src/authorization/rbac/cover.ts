/**
 * Whether some rules grant no more than others: each verb of each resource must be covered by a single rule, as
 * kube-apiserver decides (component-helpers auth/rbac/validation). A rule stands for the product of its lists, so its
 * rights are never enumerated one by one: values that occur in the same held rules are checked together. Pure.
 */
import { spendTime } from "../../api/work-time.ts";
import { type PolicyRule, urlPrefix } from "./policy-rule.ts";

/** What is not covered. */
export interface Uncovered {
  /** Rules of one verb, one group, one resource (and one name), or of one path. */
  readonly rules: readonly PolicyRule[];
  /** There are others. */
  readonly isMore: boolean;
  /** Steps that it took. */
  readonly steps: number;
}

/** Maximum number of missing rights reported. */
const reportedMax = 500;

/** Most steps, of some ten nanoseconds, that an answer may take. */
const stepsMax = 10_000_000;

/** The held or requested rules are too many to compare. */
export class TooManyRightsError extends Error {
  override readonly name = "TooManyRightsError";
  constructor() {
    super("the rules are too large to be compared with those that are held: grant them in smaller roles");
  }
}

/**
 * Returns the rights of `asked` that `held` does not cover.
 * @param most maximum number of missing rights returned
 * @throws TooManyRightsError when the comparison takes too long
 */
export function uncovered(
  held: readonly PolicyRule[],
  asked: readonly PolicyRule[],
  most = reportedMax,
): Uncovered {
  const covering = new Covering(held, most);
  for (const rule of asked) {
    covering.look(
      [rule.apiGroups ?? [], rule.resources ?? [], rule.verbs, namesOf(rule)],
      covering.resources,
      resourceRule,
    );
    covering.look([rule.nonResourceURLs ?? [], rule.verbs], covering.paths, pathRule);
    if (covering.isMore) break;
  }
  return { rules: covering.missing, isMore: covering.isMore, steps: covering.steps };
}

/** A rule without names is for any; so is its only name here. */
const anyName = Symbol("any name");

type Value = string | typeof anyName;

const namesOf = ({ resourceNames = [] }: PolicyRule): readonly Value[] =>
  resourceNames.length === 0 ? [anyName] : resourceNames;

function resourceRule([group, resource, verb, name]: readonly Value[]): PolicyRule {
  const rule = {
    verbs: [verb as string],
    apiGroups: [group as string],
    resources: [resource as string],
  };
  return typeof name === "string" ? { ...rule, resourceNames: [name] } : rule;
}

function pathRule([url, verb]: readonly Value[]): PolicyRule {
  return { verbs: [verb as string], nonResourceURLs: [url as string] };
}

/** One of the lists of held rules: which rules have a value. Rules are identified by index. */
interface Side {
  readonly of: ReadonlyMap<string, readonly number[]>;
  /** Rules that have all values. */
  readonly all: ReadonlySet<number>;
  /** The values of held rules that cover this one. */
  readonly givers: (value: string) => readonly string[];
}

/** Values of which the same held rules speak. */
interface Class {
  readonly rules: ReadonlySet<number>;
  readonly place: number;
}

class Covering {
  readonly resources: readonly Side[];
  readonly paths: readonly Side[];
  readonly missing: PolicyRule[] = [];
  isMore = false;
  steps = 0;

  readonly #most: number;

  constructor(held: readonly PolicyRule[], most: number) {
    this.#most = most;
    const itself = (value: string) => [value];
    const verbs = this.#side(held, (rule) => rule.verbs, itself);
    const prefixes = new Set(held.flatMap(({ nonResourceURLs = [] }) => nonResourceURLs.map(urlPrefix)));
    const lengths = new Set([...prefixes].flatMap((prefix) => (prefix === undefined ? [] : [prefix.length])));
    this.resources = [
      this.#side(held, (rule) => rule.apiGroups, itself),
      this.#side(held, (rule) => rule.resources, withAllParents),
      verbs,
      this.#side(held, (rule) => (rule.resourceNames?.length ? rule.resourceNames : ["*"]), itself, false),
    ];
    this.paths = [
      this.#side(
        held,
        (rule) => rule.nonResourceURLs?.flatMap((url) => [url, ...prefixKeys(url)]),
        (url) => [url, ...[...lengths].map((length) => prefixKey(url.slice(0, length)))],
      ),
      verbs,
    ];
  }

  /** @throws TooManyRightsError */
  #step(count: number): void {
    spendTime(count);
    this.steps += count;
    if (this.steps > stepsMax) throw new TooManyRightsError();
  }

  #side(
    held: readonly PolicyRule[],
    valuesOf: (rule: PolicyRule) => readonly string[] | undefined,
    givers: Side["givers"],
    hasNames = true,
  ): Side {
    const of = new Map<string, number[]>();
    const all = new Set<number>();
    for (const [place, rule] of held.entries()) {
      const values = valuesOf(rule) ?? [];
      this.#step(values.length);
      for (const value of values) {
        // The name `*` is a name; what stands for all names is that there is none.
        if (value === "*" && (hasNames || !rule.resourceNames?.length)) all.add(place);
        const places = of.get(value);
        if (places === undefined) of.set(value, [place]);
        else if (places.at(-1) !== place) places.push(place);
      }
    }
    return { of, all, givers };
  }

  /** Checks all combinations of the values, and records those that no held rule covers. */
  look(
    lists: readonly (readonly Value[])[],
    sides: readonly Side[],
    ruleOf: (values: readonly Value[]) => PolicyRule,
  ): void {
    if (lists.some((list) => list.length === 0)) return;
    const classes = lists.map((list, i) => this.#classesOf(list, sides[i] as Side));
    const distinct = classes.map((of) => [...new Set(of)]);
    const gaps = new Set<string>();
    this.#findGaps(distinct, sides, 0, undefined, "", gaps);
    if (gaps.size === 0) return;
    this.#note(lists, classes, 0, "", [], gaps, ruleOf);
  }

  /** The class of each value. */
  #classesOf(values: readonly Value[], { of, givers }: Side): readonly Class[] {
    const known = new Map<string, Class>();
    return values.map((value) => {
      const rules = new Set<number>();
      for (const giver of typeof value === "string" ? givers(value) : []) {
        this.#step(1);
        for (const place of of.get(giver) ?? []) rules.add(place);
      }
      this.#step(1 + rules.size);
      const key = [...rules].sort((a, b) => a - b).join();
      let made = known.get(key);
      if (made === undefined) {
        made = { rules, place: known.size };
        known.set(key, made);
      }
      return made;
    });
  }

  /**
   * Notes the combinations of classes that no held rule covers, and those that begin so.
   * @param left the rules that cover what is chosen so far; undefined: all
   */
  #findGaps(
    distinct: readonly (readonly Class[])[],
    sides: readonly Side[],
    depth: number,
    left: readonly number[] | undefined,
    key: string,
    gaps: Set<string>,
  ): boolean {
    const side = sides[depth];
    if (side === undefined) return left?.length === 0;
    let hasGap = false;
    for (const { rules, place } of distinct[depth] ?? []) {
      this.#step(20 + (left?.length ?? rules.size + side.all.size));
      const covers = (rule: number) => rules.has(rule) || side.all.has(rule);
      const next = left?.filter(covers) ?? [...new Set([...rules, ...side.all])];
      const path = `${key} ${place}`;
      if (!this.#findGaps(distinct, sides, depth + 1, next, path, gaps)) continue;
      gaps.add(path);
      hasGap = true;
    }
    return hasGap;
  }

  #note(
    lists: readonly (readonly Value[])[],
    classes: readonly (readonly Class[])[],
    depth: number,
    key: string,
    chosen: readonly Value[],
    gaps: ReadonlySet<string>,
    ruleOf: (values: readonly Value[]) => PolicyRule,
  ): void {
    const list = lists[depth];
    if (list === undefined) {
      if (this.missing.length < this.#most) this.missing.push(ruleOf(chosen));
      else this.isMore = true;
      return;
    }
    for (const [i, value] of list.entries()) {
      if (this.isMore) return;
      this.#step(1);
      const path = `${key} ${classes[depth]?.[i]?.place}`;
      if (gaps.has(path)) this.#note(lists, classes, depth + 1, path, [...chosen, value], gaps, ruleOf);
    }
  }
}

/** A resource is given by its name, and a subresource by that of all resources: the pods/log by the name of all logs. */
function withAllParents(resource: string): readonly string[] {
  const [, subresource = ""] = resource.split("/", 2);
  return subresource === "" ? [resource] : [resource, `*/${subresource}`];
}

/** What is no path, so that it is no other's key. */
const prefixKey = (prefix: string) => `prefix ${prefix}`;

function prefixKeys(url: string): readonly string[] {
  const prefix = urlPrefix(url);
  return prefix === undefined ? [] : [prefixKey(prefix)];
}
