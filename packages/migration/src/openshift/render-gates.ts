/** Writes gates into the objects of their readers. Pure. Source: docs/behaviour/migration-controllers.md B6, "What is rendered". */
import { isDeepStrictEqual } from "node:util";
import type { Stored } from "@longshore/kube";
import { type FeatureGateOptions, type GateValues, isMigrationGate } from "./gates-of-selection.ts";
import type { KubeletConfig, Operand, OperandKind } from "./operands.ts";

/** Name of the operator's KubeletConfig. */
export const kubeletConfigName = "longshore-feature-gates";
const managedBy = { key: "app.kubernetes.io/managed-by", value: "longshore" } as const;
const gatesKey = "feature-gates";

type Members = Readonly<Record<string, unknown>>;
type KnownGates = FeatureGateOptions["knownGates"];

/** The operand with these gates in its observed configuration; undefined when it has them. */
export function renderOperand(
  operand: Stored<Operand>,
  { argumentsKey }: Pick<OperandKind, "argumentsKey">,
  values: GateValues,
  knownGates: KnownGates,
): Stored<Operand> | undefined {
  const observedConfig = membersOf(operand.spec?.observedConfig);
  const flags = membersOf(observedConfig[argumentsKey]);
  const others = textsOf(flags[gatesKey]).filter((entry) => !isOwn(gateOf(entry), knownGates));
  const own = Object.entries(values).map(([gate, value]) => `${gate}=${value}`);
  const entries = [...others, ...own];
  if (isDeepStrictEqual(entries, textsOf(flags[gatesKey]))) return undefined;
  const rendered = withMember(flags, gatesKey, entries.length === 0 ? undefined : entries);
  const kept = Object.keys(rendered).length === 0 ? undefined : rendered;
  return {
    ...operand,
    spec: { ...operand.spec, observedConfig: withMember(observedConfig, argumentsKey, kept) },
  };
}

/** The operator's own entries in an operand's observed configuration. */
export function renderedGates(
  operand: Operand,
  { argumentsKey }: Pick<OperandKind, "argumentsKey">,
  knownGates: KnownGates,
): readonly string[] {
  const flags = membersOf(membersOf(operand.spec?.observedConfig)[argumentsKey]);
  return textsOf(flags[gatesKey]).filter((entry) => isOwn(gateOf(entry), knownGates));
}

/** The names of migration gates that are on in an operand's observed configuration. */
export function renderedMigrationGates(
  operand: Operand | undefined,
  { argumentsKey }: Pick<OperandKind, "argumentsKey">,
): readonly string[] {
  const flags = membersOf(membersOf(operand?.spec?.observedConfig)[argumentsKey]);
  return textsOf(flags[gatesKey])
    .filter((entry) => entry.endsWith("=true"))
    .map(gateOf)
    .filter(isMigrationGate);
}

/** What is to become of the operator's KubeletConfig. */
export type KubeletChange =
  | { readonly change: "none" | "foreign" }
  | { readonly change: "create"; readonly object: KubeletConfig }
  | { readonly change: "update"; readonly object: Stored<KubeletConfig> }
  | { readonly change: "delete"; readonly uid: string };

/** Whether the KubeletConfig is the operator's, by its label. */
export function isOwnKubeletConfig({ metadata }: KubeletConfig): boolean {
  return metadata?.labels?.[managedBy.key] === managedBy.value;
}

/** The change after which the kubelets are given these gates. */
export function renderKubelet(present: Stored<KubeletConfig> | undefined, values: GateValues): KubeletChange {
  const isEmpty = Object.keys(values).length === 0;
  if (present === undefined) {
    return isEmpty ? { change: "none" } : { change: "create", object: aKubeletConfig(values) };
  }
  if (!isOwnKubeletConfig(present)) return { change: isEmpty ? "none" : "foreign" };
  if (isEmpty) return { change: "delete", uid: present.metadata.uid };
  const { spec } = aKubeletConfig(values);
  if (spec === undefined || isDeepStrictEqual(spec, present.spec)) return { change: "none" };
  return { change: "update", object: { ...present, spec } };
}

function aKubeletConfig(featureGates: GateValues): KubeletConfig {
  return {
    metadata: { name: kubeletConfigName, labels: { [managedBy.key]: managedBy.value } },
    spec: {
      // Both pools of the platform; an empty selector would match none.
      machineConfigPoolSelector: {
        matchExpressions: [{ key: "machineconfiguration.openshift.io/mco-built-in", operator: "Exists" }],
      },
      kubeletConfig: { featureGates },
    },
  };
}

function isOwn(gate: string, knownGates: KnownGates): boolean {
  return isMigrationGate(gate) || Object.hasOwn(knownGates, gate);
}

function gateOf(entry: string): string {
  return entry.split("=", 1)[0] ?? "";
}

function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}

function withMember(members: Members, key: string, value: unknown): Members {
  const { [key]: _, ...others } = members;
  return value === undefined ? others : { ...members, [key]: value };
}
