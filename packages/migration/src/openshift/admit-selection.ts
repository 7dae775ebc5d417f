/**
 * May a cluster go from one set of gates to another? Pure. Source: docs/behaviour/migration-controllers.md B6, "Which set
 * is taken"; the order of the two sets: B5.
 */
import { migrationGates } from "@longshore/translation";
import { type FeatureSelection, isSameSelection } from "./feature-gate.ts";
import { type FeatureGateOptions, isMigrationGate } from "./gates-of-selection.ts";

/** What a transition depends on. */
export interface TransitionFacts {
  /** All operands of the control plane run with what was rendered. */
  readonly isControlPlaneRolledOut: boolean;
  /** All machines run with what was rendered. */
  readonly arePoolsRolledOut: boolean;
  /** Nodes whose CSINode lists a migrated plugin; left out: not read yet. */
  readonly migratedNodes?: readonly string[];
}

/** Whether a set is taken. A `refused` one needs the administrator; one that `waits` is taken by itself later. */
export type Admission =
  | { readonly verdict: "admitted" }
  | { readonly verdict: "refused" | "waits"; readonly reason: string; readonly message: string }
  /** It depends on the nodes, which have not been read. */
  | { readonly verdict: "asksNodes" };

const admitted: Admission = { verdict: "admitted" };

/** Whether the selection in force may be followed by `wanted`. */
export function admitSelection(
  inForce: FeatureSelection,
  wanted: FeatureSelection,
  facts: TransitionFacts,
  options: FeatureGateOptions,
): Admission {
  const faulty = unknownSet(wanted, options) ?? faultyList(wanted, options);
  if (faulty !== undefined) return faulty;
  const isSet = inForce.featureSet === wanted.featureSet;
  if (isSet || isSameSelection(inForce, wanted)) return admitted;
  if (isFinal(inForce.featureSet)) {
    return refused(
      "FeatureSetIsFinal",
      `${inForce.featureSet} cannot be left: set it in spec.featureSet again`,
    );
  }
  return options.order === "any" ? admitted : admitInOrder(inForce.featureSet, wanted.featureSet, facts);
}

/** Whether a set, once taken, is the cluster's for good and keeps it from upgrades. */
export function isFinal(featureSet: string): boolean {
  return featureSet === "TechPreviewNoUpgrade" || featureSet === "CustomNoUpgrade";
}

const setsOf: Readonly<Record<FeatureGateOptions["order"], readonly string[]>> = {
  any: ["", "TechPreviewNoUpgrade", "CustomNoUpgrade", "CSIMigration"],
  "two-sets": ["", "CustomNoUpgrade", "CSIMigrationControlPlane", "CSIMigrationNode"],
};

function unknownSet({ featureSet }: FeatureSelection, { order }: FeatureGateOptions): Admission | undefined {
  if (setsOf[order].includes(featureSet)) return undefined;
  const known = setsOf[order].map((set) => (set === "" ? "none" : set)).join(", ");
  return refused(
    "UnknownFeatureSet",
    `spec.featureSet "${featureSet}": with the order ${order} choose ${known}`,
  );
}

function faultyList(
  { enabled, disabled }: FeatureSelection,
  { knownGates, order }: FeatureGateOptions,
): Admission | undefined {
  const both = enabled.find((gate) => disabled.includes(gate));
  if (both !== undefined) {
    return inList("ConflictingFeatureGates", both, "is both enabled and disabled: remove it from one list");
  }
  for (const [gates, value] of [
    [enabled, true],
    [disabled, false],
  ] as const) {
    for (const gate of gates) {
      const known = Object.hasOwn(knownGates, gate) ? knownGates[gate] : undefined;
      if (known === undefined) {
        return inList(
          "UnknownFeatureGate",
          gate,
          "is no gate that the operator knows of this release: remove it",
        );
      }
      if (known.locked === true && known.default !== value) {
        return inList("LockedFeatureGate", gate, `is locked to ${known.default}: remove it`);
      }
      if (value && takesDecisionFromNode(gate)) {
        return inList("NodeMustDecide", gate, "takes the in-tree plugin from nodes that need it: remove it");
      }
      if (order === "two-sets" && isMigrationGate(gate)) {
        return inList(
          "MigrationGateNeedsItsSet",
          gate,
          "needs CSIMigrationControlPlane, then CSIMigrationNode",
        );
      }
    }
  }
  return undefined;
}

function takesDecisionFromNode(gate: string): boolean {
  return (
    migrationGates.some(({ completeGate }) => completeGate === gate) ||
    /^InTreePlugin.+Unregister$/.test(gate)
  );
}

/** Both sides are on in the set `CSIMigration`, as in `CSIMigrationNode`: the operator ran with the order `any` before. */
function admitInOrder(from: string, to: string, facts: TransitionFacts): Admission {
  const areNodesOn = from === "CSIMigrationNode" || from === "CSIMigration";
  if (areNodesOn) {
    if (to === "CSIMigrationControlPlane" || to === "CSIMigrationNode") return admitted;
    return refused("NodesFirst", `spec.featureSet: go from ${from} to CSIMigrationControlPlane first`);
  }
  if (from === "CSIMigrationControlPlane") {
    return to === "CSIMigrationNode" ? afterControlPlane(facts) : afterNodes(facts);
  }
  if (to !== "CSIMigrationNode") return admitted;
  return refused(
    "ControlPlaneFirst",
    "spec.featureSet: set CSIMigrationControlPlane before CSIMigrationNode",
  );
}

function afterControlPlane({ isControlPlaneRolledOut }: TransitionFacts): Admission {
  if (isControlPlaneRolledOut) return admitted;
  const message = "the kubelets change over once the whole control plane runs with its gates";
  return { verdict: "waits", reason: "WaitingForControlPlane", message };
}

/** Names of nodes in one message. */
const namesMax = 5;

function afterNodes({ arePoolsRolledOut, migratedNodes }: TransitionFacts): Admission {
  const reason = "WaitingForNodes";
  if (!arePoolsRolledOut) {
    return {
      verdict: "waits",
      reason,
      message: "machines still roll out: the control plane keeps its gates",
    };
  }
  if (migratedNodes === undefined) return { verdict: "asksNodes" };
  if (migratedNodes.length === 0) return admitted;
  const names = migratedNodes.slice(0, namesMax).join(", ") + (migratedNodes.length > namesMax ? ", …" : "");
  const message = `${migratedNodes.length} CSINodes still list migrated plugins (${names}): the control plane keeps its gates`;
  return { verdict: "waits", reason, message };
}

function inList(reason: string, gate: string, what: string): Admission {
  return refused(reason, `spec.customNoUpgrade: ${gate} ${what}`);
}

function refused(reason: string, message: string): Admission {
  return { verdict: "refused", reason, message };
}
