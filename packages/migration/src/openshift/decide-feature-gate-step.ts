/**
 * The next step towards the gates that the FeatureGate selects. Pure. Source: docs/behaviour/migration-controllers.md B6.
 *
 *     createOperator ─► listMigratedNodes ─► record ─► renderOperand … ─► create, update or deleteKubeletConfig ─► report
 *                        (when it matters)                                                                  ─► settle, wait
 *
 * Invariants
 *  - A set is recorded before anything of it is rendered, and with it what the latest revisions have; so each crash leaves a state from which the same set goes on.
 *  - What is rendered is always the set in force: a set that is refused or waits changes no gate.
 */
import { isDeepStrictEqual } from "node:util";
import { isDeleting, type Stored } from "@longshore/kube";
import { type Admission, admitSelection, type TransitionFacts } from "./admit-selection.ts";
import {
  type ClusterOperator,
  type ConditionState,
  type RevisedGatesOf,
  recordedRevisions,
  recordedSelection,
  relatedObjects,
} from "./cluster-operator.ts";
import { conditionStates } from "./condition-states.ts";
import {
  emptySelection,
  type FeatureGate,
  type FeatureSelection,
  isSameSelection,
  malformedField,
  selectionOf,
} from "./feature-gate.ts";
import { type FeatureGateOptions, gatesOfSelection, isMigrationGate } from "./gates-of-selection.ts";
import {
  isOperandObserved,
  isOperandRolledOut,
  isPoolDegraded,
  isPoolRolledOut,
  type KubeletConfig,
  latestRevision,
  type MachineConfigPool,
  type Operand,
  type OperandKind,
  operandKinds,
  type RevisedGates,
} from "./operands.ts";
import {
  isOwnKubeletConfig,
  type KubeletChange,
  renderedGates,
  renderedMigrationGates,
  renderKubelet,
  renderOperand,
} from "./render-gates.ts";

/** What is known about the gates of the cluster. */
export interface FeatureGateObservation {
  readonly options: FeatureGateOptions;
  readonly featureGate: Stored<FeatureGate> | undefined;
  readonly clusterOperator: Stored<ClusterOperator> | undefined;
  /** The object of each component that has one. */
  readonly operands: Readonly<Partial<Record<OperandKind["component"], Stored<Operand>>>>;
  readonly kubeletConfig: Stored<KubeletConfig> | undefined;
  readonly pools: readonly Stored<MachineConfigPool>[];
  /** Nodes whose CSINode lists a migrated plugin; undefined before they were read in this pass. */
  readonly migratedNodes?: readonly string[];
}

/** One action of the operator. */
export type FeatureGateStep =
  | { readonly step: "settle" }
  /** The set waits for nodes, which are read again later. */
  | { readonly step: "waitForNodes" }
  | { readonly step: "createOperator" }
  | { readonly step: "listMigratedNodes" }
  /** This selection is in force from now on; `revised`: what the latest revisions have. */
  | { readonly step: "record"; readonly selection: FeatureSelection; readonly revised: RevisedGatesOf }
  | { readonly step: "renderOperand"; readonly kind: OperandKind; readonly object: Stored<Operand> }
  | { readonly step: "createKubeletConfig"; readonly object: KubeletConfig }
  | { readonly step: "updateKubeletConfig"; readonly object: Stored<KubeletConfig> }
  | { readonly step: "deleteKubeletConfig"; readonly uid: string }
  /** `refusal`: why a set is refused, where that was not reported yet. */
  | {
      readonly step: "report";
      readonly states: readonly ConditionState[];
      readonly refusal?: { readonly reason: string; readonly message: string };
    };

/** Decides on the next step. */
export function decideFeatureGateStep(observed: FeatureGateObservation): FeatureGateStep {
  const { clusterOperator, options } = observed;
  if (clusterOperator === undefined) return { step: "createOperator" };
  const recorded = recordedSelection(clusterOperator);
  const before = recorded ?? selectionWithoutRecord(observed);
  const malformed = malformedField(observed.featureGate);
  const wanted = malformed === undefined ? selectionOf(observed.featureGate) : before;
  // Without a record and in any order the set is taken as it is: only its own faults count.
  const from = recorded === undefined && options.order === "any" ? wanted : before;
  const admission: Admission =
    malformed === undefined
      ? admitSelection(from, wanted, transitionFacts(observed), options)
      : { verdict: "refused", reason: "InvalidFeatureGate", message: malformed };
  if (admission.verdict === "asksNodes") return { step: "listMigratedNodes" };
  // Without a record it is not known what is in force: nothing is flipped for a set that is refused.
  if (recorded === undefined && options.order === "any" && admission.verdict === "refused") {
    return report(observed, clusterOperator, { admission, inForce: undefined, wanted }) ?? { step: "settle" };
  }
  const inForce = admission.verdict === "admitted" ? wanted : before;
  const revised = revisions(observed, inForce);
  const isRecorded = recorded !== undefined && isSameSelection(recorded, inForce);
  if (!isRecorded || !isDeepStrictEqual(revised, recordedRevisions(clusterOperator))) {
    return { step: "record", selection: inForce, revised };
  }
  return (
    renderControlPlane(observed, inForce) ??
    renderKubelets(observed, inForce) ??
    report(observed, clusterOperator, { admission, inForce, wanted }) ??
    (admission.verdict === "waits" && admission.reason === "WaitingForNodes"
      ? { step: "waitForNodes" }
      : { step: "settle" })
  );
}

/**
 * The set that is in force where there is no record: with the two sets what was rendered says it, so that the loss of the record
 * skips no step of their order.
 */
function selectionWithoutRecord({
  options,
  operands,
  kubeletConfig,
}: FeatureGateObservation): FeatureSelection {
  if (options.order === "any") return emptySelection;
  const kubeletGates = kubeletConfig?.spec?.kubeletConfig?.featureGates ?? {};
  const isOnNodes = Object.keys(kubeletGates).some((gate) => kubeletGates[gate] && isMigrationGate(gate));
  if (isOnNodes) return { ...emptySelection, featureSet: "CSIMigrationNode" };
  const isOnControlPlane = operandKinds.some(
    (kind) => renderedMigrationGates(operands[kind.component], kind).length > 0,
  );
  return isOnControlPlane ? { ...emptySelection, featureSet: "CSIMigrationControlPlane" } : emptySelection;
}

/** What the latest revisions have, as it is to be on record before anything of the set is rendered. */
function revisions(observed: FeatureGateObservation, inForce: FeatureSelection): RevisedGatesOf {
  const recorded = observed.clusterOperator === undefined ? {} : recordedRevisions(observed.clusterOperator);
  const { knownGates } = observed.options;
  const values = gatesOfSelection(inForce, "control plane", observed.options);
  const found = operandKinds.flatMap((kind) => {
    const operand = observed.operands[kind.component];
    const before = recorded[kind.component];
    if (operand === undefined) return before === undefined ? [] : [[kind.component, before] as const];
    const gates = renderedGates(operand, kind, knownGates);
    // Nothing is about to change and nothing has: what is observed is revised.
    const isChanged = renderOperand(operand, kind, values, knownGates) !== undefined;
    if (before === undefined && !isChanged) return [];
    return [[kind.component, revisedGates(operand, gates, before)] as const];
  });
  return Object.fromEntries(found);
}

/** What the latest revision of an operand with these gates has. */
function revisedGates(
  operand: Stored<Operand>,
  gates: readonly string[],
  before: RevisedGates | undefined,
): RevisedGates {
  const revision = latestRevision(operand);
  if (before === undefined) return { revision, gates };
  if (isDeepStrictEqual(before.gates, gates)) return before;
  // A revision that is made before the gates are observed is made for another reason.
  if (!isOperandObserved(operand)) return { ...before, revision };
  return revision > before.revision ? { revision, gates } : before;
}

function isRolledOut(
  { clusterOperator, options }: FeatureGateObservation,
  kind: OperandKind,
  operand: Stored<Operand>,
): boolean {
  const awaited = clusterOperator === undefined ? {} : recordedRevisions(clusterOperator);
  return isOperandRolledOut(
    operand,
    renderedGates(operand, kind, options.knownGates),
    awaited[kind.component],
  );
}

function transitionFacts(observed: FeatureGateObservation): TransitionFacts {
  const { operands, kubeletConfig, pools, migratedNodes } = observed;
  return {
    isControlPlaneRolledOut: operandKinds.every((kind) => {
      const operand = operands[kind.component];
      return operand !== undefined && isRolledOut(observed, kind, operand);
    }),
    arePoolsRolledOut: !isBeingDeleted(kubeletConfig) && pools.every(isPoolRolledOut),
    ...(migratedNodes === undefined ? {} : { migratedNodes }),
  };
}

function isBeingDeleted(kubeletConfig: Stored<KubeletConfig> | undefined): boolean {
  return kubeletConfig !== undefined && isDeleting(kubeletConfig);
}

function renderControlPlane(
  { operands, options }: FeatureGateObservation,
  inForce: FeatureSelection,
): FeatureGateStep | undefined {
  const values = gatesOfSelection(inForce, "control plane", options);
  for (const kind of operandKinds) {
    const operand = operands[kind.component];
    if (operand === undefined) continue;
    const object = renderOperand(operand, kind, values, options.knownGates);
    if (object !== undefined) return { step: "renderOperand", kind, object };
  }
  return undefined;
}

function kubeletChange(
  { kubeletConfig, options }: FeatureGateObservation,
  inForce: FeatureSelection,
): KubeletChange {
  return renderKubelet(kubeletConfig, gatesOfSelection(inForce, "kubelet", options));
}

function renderKubelets(
  observed: FeatureGateObservation,
  inForce: FeatureSelection,
): FeatureGateStep | undefined {
  if (isBeingDeleted(observed.kubeletConfig)) return undefined;
  const change = kubeletChange(observed, inForce);
  switch (change.change) {
    case "create":
      return { step: "createKubeletConfig", object: change.object };
    case "update":
      return { step: "updateKubeletConfig", object: change.object };
    case "delete":
      return { step: "deleteKubeletConfig", uid: change.uid };
    default:
      return undefined;
  }
}

interface Judgement {
  readonly admission: Admission;
  /** Undefined: it is not known, and stays as it is rendered. */
  readonly inForce: FeatureSelection | undefined;
  readonly wanted: FeatureSelection;
}

function report(
  observed: FeatureGateObservation,
  { status = {} }: Stored<ClusterOperator>,
  judgement: Judgement,
): FeatureGateStep | undefined {
  const states = conditionStates({ ...judgement, ...rolloutFacts(observed, judgement.inForce) });
  const present = (status.conditions ?? []).map(({ lastTransitionTime: _, ...state }) => state);
  if (isDeepStrictEqual(present, states) && isDeepStrictEqual(status.relatedObjects, relatedObjects)) {
    return undefined;
  }
  const { admission } = judgement;
  const degraded = present.find(({ type }) => type === "Degraded");
  if (admission.verdict !== "refused" || degraded?.message === admission.message) {
    return { step: "report", states };
  }
  const { reason, message } = admission;
  return { step: "report", states, refusal: { reason, message } };
}

function rolloutFacts(observed: FeatureGateObservation, inForce: FeatureSelection | undefined) {
  const { operands, pools, kubeletConfig, options } = observed;
  const given = inForce ?? emptySelection;
  const controlPlaneGates = Object.keys(gatesOfSelection(given, "control plane", options));
  const isForeign = kubeletConfig !== undefined && !isOwnKubeletConfig(kubeletConfig);
  return {
    missingOperands:
      controlPlaneGates.length === 0
        ? []
        : operandKinds.map(({ component }) => component).filter((one) => operands[one] === undefined),
    isKubeletConfigForeign: isForeign && kubeletChange(observed, given).change === "foreign",
    degradedPools: pools.filter(isPoolDegraded).map(({ metadata }) => metadata.name),
    rollingOut: [
      ...operandKinds
        .filter((kind) => {
          const operand = operands[kind.component];
          return operand !== undefined && !isRolledOut(observed, kind, operand);
        })
        .map(({ component }) => component),
      ...pools.filter((pool) => !isPoolRolledOut(pool)).map(({ metadata }) => `pool ${metadata.name}`),
    ],
  };
}
