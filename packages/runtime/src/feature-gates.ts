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
      throw new FeatureGateError(
        `unknown feature gate "${name}"; known are ${Object.keys(registry).sort().join(", ")}`,
      );
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
