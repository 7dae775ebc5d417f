/**
 * The objects from which OpenShift's operators configure what they run: one for each component of the control plane, and
 * KubeletConfigs with their pools of machines. Source: docs/behaviour/migration-controllers.md B6.
 */
import { isDeepStrictEqual } from "node:util";
import type { KubeObject, Resource, Stored } from "@longshore/kube";

type Members = Readonly<Record<string, unknown>>;

/** `operator.openshift.io/v1` KubeAPIServer, KubeControllerManager or KubeScheduler. */
export interface Operand extends KubeObject {
  readonly spec?: Members & {
    /** The part of the configuration that operators derive from other objects. */
    readonly observedConfig?: Members | null;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly latestAvailableRevision?: number;
    readonly nodeStatuses?: readonly { readonly nodeName?: string; readonly currentRevision?: number }[];
  };
}

/** One component of the control plane. */
export interface OperandKind {
  /** Its key in an observation. */
  readonly component: "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";
  readonly resource: Resource<Operand>;
  /** The member of `spec.observedConfig` that holds its flags. */
  readonly argumentsKey: string;
}

function operandResource(kind: string, plural: string): Resource<Operand> {
  return { group: "operator.openshift.io", versions: ["v1"], kind, plural, namespaced: false };
}

/** The control plane, in the order in which it is rendered. */
export const operandKinds: readonly OperandKind[] = [
  {
    component: "kube-apiserver",
    resource: operandResource("KubeAPIServer", "kubeapiservers"),
    argumentsKey: "apiServerArguments",
  },
  {
    component: "kube-controller-manager",
    resource: operandResource("KubeControllerManager", "kubecontrollermanagers"),
    argumentsKey: "extendedArguments",
  },
  {
    component: "kube-scheduler",
    resource: operandResource("KubeScheduler", "kubeschedulers"),
    argumentsKey: "extendedArguments",
  },
];

/**
 * Which gates an operand's latest revision has. Its operator may observe new gates before it makes a revision of them: until then
 * all nodes run with the latest revision, which has other gates than the operand.
 */
export interface RevisedGates {
  /** The latest revision, when that was found out. */
  readonly revision: number;
  /** The operator's own entries, `GATE=true`. */
  readonly gates: readonly string[];
}

/** The latest revision of an operand; 0 before it has one. */
export function latestRevision({ status }: Operand): number {
  return status?.latestAvailableRevision ?? 0;
}

/** Whether the operand's operator has seen its present configuration. */
export function isOperandObserved({ metadata, status }: Stored<Operand>): boolean {
  return (status?.observedGeneration ?? -1) >= (metadata.generation ?? 0);
}

/**
 * Whether all instances of an operand run with its present configuration: its operator has observed it, the latest revision has the
 * present `gates`, and each node has that revision. Without `revised`, what is observed counts as revised.
 */
export function isOperandRolledOut(
  operand: Stored<Operand>,
  gates: readonly string[],
  revised: RevisedGates | undefined,
): boolean {
  const { latestAvailableRevision, nodeStatuses = [] } = operand.status ?? {};
  return (
    isOperandObserved(operand) &&
    (revised === undefined || isDeepStrictEqual(gates, revised.gates)) &&
    nodeStatuses.length > 0 &&
    nodeStatuses.every(({ currentRevision }) => currentRevision === latestAvailableRevision)
  );
}

/** `machineconfiguration.openshift.io/v1` KubeletConfig. */
export interface KubeletConfig extends KubeObject {
  readonly spec?: {
    readonly machineConfigPoolSelector?: unknown;
    readonly kubeletConfig?: { readonly featureGates?: Readonly<Record<string, boolean>> };
  };
}

/** Where KubeletConfigs are served. */
export const kubeletConfigs: Resource<KubeletConfig> = {
  group: "machineconfiguration.openshift.io",
  versions: ["v1"],
  kind: "KubeletConfig",
  plural: "kubeletconfigs",
  namespaced: false,
};

/** `machineconfiguration.openshift.io/v1` MachineConfigPool: machines with one configuration. */
export interface MachineConfigPool extends KubeObject {
  readonly status?: {
    readonly observedGeneration?: number;
    readonly machineCount?: number;
    readonly updatedMachineCount?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** Where MachineConfigPools are served. */
export const machineConfigPools: Resource<MachineConfigPool> = {
  group: "machineconfiguration.openshift.io",
  versions: ["v1"],
  kind: "MachineConfigPool",
  plural: "machineconfigpools",
  namespaced: false,
};

/** Whether all machines of a pool run with its present configuration. */
export function isPoolRolledOut({ metadata, status = {} }: Stored<MachineConfigPool>): boolean {
  const { observedGeneration = -1, machineCount, updatedMachineCount } = status;
  return observedGeneration >= (metadata.generation ?? 0) && updatedMachineCount === machineCount;
}

/** Whether a machine of the pool could not be configured. */
export function isPoolDegraded({ status }: MachineConfigPool): boolean {
  return status?.conditions?.some((one) => one.type === "Degraded" && one.status === "True") ?? false;
}
