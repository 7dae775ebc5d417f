/**
 * Carrying an OpenShift cluster across: the operator that reads the FeatureGate, and its rules.
 * Source: docs/behaviour/migration-controllers.md part B.
 */
export { type ClusterOperator, clusterOperatorName, clusterOperators } from "./cluster-operator.ts";
export { type FeatureGate, featureGateObjects, openshiftCrdsUrl } from "./feature-gate.ts";
export {
  type FeatureGateOperatorArgs,
  operatorName,
  startFeatureGateOperator,
} from "./feature-gate-operator.ts";
export type { FeatureGateOptions } from "./gates-of-selection.ts";
export { createOpenShiftPlatform, type OpenShiftPlatformEnv } from "./openshift-platform.ts";
export {
  type KubeletConfig,
  kubeletConfigs,
  type MachineConfigPool,
  machineConfigPools,
  type Operand,
  type OperandKind,
  operandKinds,
} from "./operands.ts";
export { kubeletConfigName } from "./render-gates.ts";
