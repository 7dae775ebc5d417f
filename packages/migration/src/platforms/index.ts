export { createKubeadmPlatform, type KubeadmPlatformEnv } from "./kubeadm-platform.ts";
export { createManualPlatform, type ManualPlatformEnv, type ManualTask } from "./manual-platform.ts";
export { type NodeCommand, NodeCommandError, nodeCommandOf } from "./node-command.ts";
export { controlPlaneGatesMap, readPublishedGates } from "./observed-gates.ts";
