/** The conditions that the operator reports. Pure. Source: docs/behaviour/migration-controllers.md B6, "Conditions". */
import { type Admission, isFinal } from "./admit-selection.ts";
import type { ConditionState } from "./cluster-operator.ts";
import type { FeatureSelection } from "./feature-gate.ts";

/** What the conditions follow from. */
export interface ConditionFacts {
  readonly admission: Admission;
  /** Undefined: it is not known, and stays as it is rendered. */
  readonly inForce: FeatureSelection | undefined;
  readonly wanted: FeatureSelection;
  /** Components that are to be given gates and have no object. */
  readonly missingOperands: readonly string[];
  readonly isKubeletConfigForeign: boolean;
  readonly degradedPools: readonly string[];
  /** Operands and pools that do not run with what was rendered yet. */
  readonly rollingOut: readonly string[];
}

/** The states, in a fixed order. */
export function conditionStates(facts: ConditionFacts): readonly ConditionState[] {
  const { inForce, wanted } = facts;
  const final = [inForce, wanted].find((one) => one !== undefined && isFinal(one.featureSet));
  const inForceText =
    inForce === undefined
      ? "what is rendered"
      : inForce.featureSet === ""
        ? "the gates of the release"
        : inForce.featureSet;
  return [
    { type: "Available", status: "True", reason: "AsExpected", message: `in force: ${inForceText}` },
    stateOf("Degraded", degradation(facts)),
    stateOf("Progressing", progress(facts)),
    final === undefined
      ? { type: "Upgradeable", status: "True", reason: "AsExpected", message: "" }
      : {
          type: "Upgradeable",
          status: "False",
          reason: "FeatureSetNotUpgradeable",
          message: `${final.featureSet} does not allow upgrades`,
        },
  ];
}

type Cause = Pick<ConditionState, "reason" | "message">;

function stateOf(type: "Degraded" | "Progressing", cause: Cause | undefined): ConditionState {
  if (cause === undefined) return { type, status: "False", reason: "AsExpected", message: "" };
  return { type, status: "True", reason: cause.reason, message: cause.message };
}

function degradation(facts: ConditionFacts): Cause | undefined {
  const { admission, missingOperands, isKubeletConfigForeign, degradedPools } = facts;
  if (admission.verdict === "refused") return admission;
  if (missingOperands.length > 0) {
    const message = `no operator.openshift.io object "cluster" of ${missingOperands.join(", ")}: create it`;
    return { reason: "OperandMissing", message };
  }
  if (isKubeletConfigForeign) {
    const message =
      "KubeletConfig longshore-feature-gates has no label app.kubernetes.io/managed-by: longshore: remove or rename it";
    return { reason: "ForeignKubeletConfig", message };
  }
  if (degradedPools.length === 0) return undefined;
  return { reason: "MachineConfigPoolDegraded", message: `degraded: ${degradedPools.join(", ")}` };
}

function progress({ admission, rollingOut }: ConditionFacts): Cause | undefined {
  if (admission.verdict === "waits") return admission;
  if (rollingOut.length === 0) return undefined;
  return { reason: "RollingOut", message: `rolling out: ${rollingOut.join(", ")}` };
}
