/**
 * The feature-gate registry. A set of gates is a value that is injected, never a global: the
 * attach/detach controller, the kubelet and the scheduler of one process may each have their own.
 */

/** Where a gate stands and what it is by default. */
export interface FeatureGateSpec {
  readonly default: boolean;
  readonly stage: "alpha" | "beta" | "GA" | "deprecated";
  /** A locked gate rejects any value but its default. */
  readonly locked?: boolean;
}

/** The text or value given for a gate cannot be used. */
export class FeatureGateError extends Error {
  override readonly name = "FeatureGateError";
}

/** Reads gate values, by name. */
export interface FeatureGates {
  enabled(name: string): boolean;
}

/** Parses `A=true,B=false`, the form of `--feature-gates`. @throws FeatureGateError naming the part */
export function parseFeatureGates(text: string): Record<string, boolean> {
  const values: Record<string, boolean> = {};
  for (const part of text.split(",").map((p) => p.trim())) {
    if (part === "") continue;
    const match = /^([A-Za-z0-9]+)=(true|false)$/i.exec(part);
    if (match?.[1] === undefined) {
      throw new FeatureGateError(`feature gate "${part}": write NAME=true or NAME=false`);
    }
    values[match[1]] = match[2]?.toLowerCase() === "true";
  }
  return values;
}

/** A message that names all of many gates would hide the one that is meant. */
const namedMax = 8;

function knownLike(name: string, known: readonly string[]): string {
  if (known.length <= namedMax) return `known are ${[...known].sort().join(", ")}`;
  const distances = new Map(known.map((one) => [one, distance(name, one)]));
  const nearest = [...known].sort(
    (a, b) => (distances.get(a) ?? 0) - (distances.get(b) ?? 0) || (a < b ? -1 : 1),
  );
  return `the nearest of ${known.length} are ${nearest.slice(0, namedMax).join(", ")}`;
}

/** The fewest characters to insert, remove or replace (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, ofA] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, ofB] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (ofA === ofB ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/**
 * A fixed set of gates: the registry's defaults with `values` over them.
 * @throws FeatureGateError for an unknown or locked gate
 */
export function featureGates(
  registry: Readonly<Record<string, FeatureGateSpec>>,
  values: Readonly<Record<string, boolean>> = {},
): FeatureGates & { readonly values: Readonly<Record<string, boolean>> } {
  const effective: Record<string, boolean> = {};
  for (const [name, spec] of Object.entries(registry)) effective[name] = spec.default;
  for (const [name, value] of Object.entries(values)) {
    const spec = registry[name];
    if (spec === undefined) {
      throw new FeatureGateError(`unknown feature gate "${name}"; ${knownLike(name, Object.keys(registry))}`);
    }
    if (spec.locked === true && value !== spec.default) {
      throw new FeatureGateError(`feature gate "${name}" is locked to ${spec.default}: remove it`);
    }
    effective[name] = value;
  }
  return {
    values: effective,
    enabled(name) {
      const value = effective[name];
      if (value === undefined) throw new FeatureGateError(`feature gate "${name}" is not registered`);
      return value;
    },
  };
}
