/**
 * The operator's ClusterOperator: what it reports to the cluster-version operator, and which set is in force.
 * Source: docs/behaviour/migration-controllers.md B6, "Conditions".
 */
import { apiTime, type KubeObject, type Resource } from "@longshore/kube";
import { emptySelection, type FeatureSelection, featureGateObjects, singletonName } from "./feature-gate.ts";
import {
  kubeletConfigs,
  machineConfigPools,
  type OperandKind,
  operandKinds,
  type RevisedGates,
} from "./operands.ts";
import { kubeletConfigName } from "./render-gates.ts";

/** Name of the operator's ClusterOperator. */
export const clusterOperatorName = "longshore-feature-gates";

/** One condition. */
export interface OperatorCondition {
  readonly type: "Available" | "Degraded" | "Progressing" | "Upgradeable";
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

/** An object that belongs to what the operator reports about; an empty name stands for all of the kind. */
export interface RelatedObject {
  readonly group: string;
  readonly resource: string;
  readonly name: string;
}

/** `status` of the ClusterOperator. */
export interface OperatorStatus {
  readonly conditions?: readonly OperatorCondition[];
  readonly relatedObjects?: readonly RelatedObject[];
  readonly extension?: {
    readonly admitted?: FeatureSelection;
    readonly revised?: RevisedGatesOf | null;
  } | null;
}

/** What the latest revision of each component has. */
export type RevisedGatesOf = Readonly<Partial<Record<OperandKind["component"], RevisedGates>>>;

/** `config.openshift.io/v1` ClusterOperator. */
export interface ClusterOperator extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: OperatorStatus;
}

/** Where ClusterOperators are served. */
export const clusterOperators: Resource<ClusterOperator> = {
  group: "config.openshift.io",
  versions: ["v1"],
  kind: "ClusterOperator",
  plural: "clusteroperators",
  namespaced: false,
};

/** The objects of the operator. */
export const relatedObjects: readonly RelatedObject[] = [
  { resource: featureGateObjects, name: singletonName },
  ...operandKinds.map(({ resource }) => ({ resource, name: singletonName })),
  { resource: kubeletConfigs, name: kubeletConfigName },
  { resource: machineConfigPools, name: "" },
].map(({ resource: { group, plural }, name }) => ({ group, resource: plural, name }));

/** The selection that is in force by the record; undefined when there is no record. */
export function recordedSelection({ status }: ClusterOperator): FeatureSelection | undefined {
  const admitted = status?.extension?.admitted;
  return admitted == null ? undefined : { ...emptySelection, ...admitted };
}

/** What the latest revisions have by the record. */
export function recordedRevisions({ status }: ClusterOperator): RevisedGatesOf {
  return status?.extension?.revised ?? {};
}

/** A condition without its time. */
export type ConditionState = Omit<OperatorCondition, "lastTransitionTime">;

/** The conditions with their times: that of the last change of `status`. */
export function timedConditions(
  states: readonly ConditionState[],
  before: readonly OperatorCondition[],
  now: Date,
): readonly OperatorCondition[] {
  return states.map((state) => {
    const old = before.find(({ type }) => type === state.type);
    const isSame = old?.status === state.status;
    return { ...state, lastTransitionTime: isSame ? old.lastTransitionTime : apiTime(now) };
  });
}
