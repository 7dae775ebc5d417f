/**
 * OpenShift's FeatureGate: one object, `cluster`, that says which set of feature gates all components have.
 * Source: docs/behaviour/migration-controllers.md B3.
 */
import type { KubeObject, Resource } from "@longshore/kube";

/** `config.openshift.io/v1` FeatureGate. */
export interface FeatureGate extends KubeObject {
  readonly spec?: {
    /** Empty or left out: the gates of the release. */
    readonly featureSet?: string | null;
    /** Counts with the set `CustomNoUpgrade` only. */
    readonly customNoUpgrade?: {
      readonly enabled?: readonly string[] | null;
      readonly disabled?: readonly string[] | null;
    } | null;
  };
}

/** Where FeatureGates are served. */
export const featureGateObjects: Resource<FeatureGate> = {
  group: "config.openshift.io",
  versions: ["v1"],
  kind: "FeatureGate",
  plural: "featuregates",
  namespaced: false,
};

/** Name of the one FeatureGate, and of the one object of each operand. */
export const singletonName = "cluster";

/** The directory with the CustomResourceDefinitions that the operator needs, one a file. */
export const openshiftCrdsUrl: URL = new URL("../../crds/openshift/", import.meta.url);

/** A set of gates, as far as it was chosen: the empty set has the name "". */
export interface FeatureSelection {
  readonly featureSet: string;
  /** With `CustomNoUpgrade`: gates that are on, sorted, in the spelling of Kubernetes. */
  readonly enabled: readonly string[];
  /** With `CustomNoUpgrade`: gates that are off, sorted, in the spelling of Kubernetes. */
  readonly disabled: readonly string[];
}

/** The selection without any set. */
export const emptySelection: FeatureSelection = { featureSet: "", enabled: [], disabled: [] };

/**
 * What is malformed in a FeatureGate, naming the field; undefined when nothing is. The definition that is shipped lets nothing of it
 * through, another may.
 */
export function malformedField(featureGate: FeatureGate | undefined): string | undefined {
  const spec: unknown = featureGate?.spec ?? {};
  if (!isObject(spec)) return "spec must be an object";
  const { featureSet = null, customNoUpgrade = null } = spec;
  if (featureSet !== null && typeof featureSet !== "string") return "spec.featureSet must be a string";
  if (featureSet !== "CustomNoUpgrade" || customNoUpgrade === null) return undefined;
  if (!isObject(customNoUpgrade)) return "spec.customNoUpgrade must be an object";
  for (const list of ["enabled", "disabled"]) {
    const gates = customNoUpgrade[list] ?? [];
    if (!Array.isArray(gates) || !gates.every((gate) => typeof gate === "string")) {
      return `spec.customNoUpgrade.${list} must be a list of names of gates`;
    }
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a FeatureGate selects that is not malformed; without one it is the empty set (B6). */
export function selectionOf(featureGate: FeatureGate | undefined): FeatureSelection {
  const { featureSet, customNoUpgrade } = featureGate?.spec ?? {};
  if (featureSet !== "CustomNoUpgrade") return { ...emptySelection, featureSet: featureSet ?? "" };
  return {
    featureSet,
    enabled: upstreamNames(customNoUpgrade?.enabled ?? []),
    disabled: upstreamNames(customNoUpgrade?.disabled ?? []),
  };
}

/** Whether both select the same. */
export function isSameSelection(one: FeatureSelection, other: FeatureSelection): boolean {
  return (
    one.featureSet === other.featureSet &&
    one.enabled.join() === other.enabled.join() &&
    one.disabled.join() === other.disabled.join()
  );
}

/** Names of the enhancement that Kubernetes spells in another way (B3). */
const upstreamSpelling: Readonly<Record<string, string>> = { CSIMigrationCinder: "CSIMigrationOpenStack" };

function upstreamNames(gates: readonly string[]): readonly string[] {
  return [...new Set(gates.map((gate) => upstreamSpelling[gate] ?? gate))].sort();
}
