/** Where Kubernetes and CSI meet: capabilities, secrets, names, topology. Pure functions, no controller. */
export * from "./csi-node.ts";
export * from "./names.ts";
export * from "./node-affinity.ts";
export * from "./secrets.ts";
export { snapshotCrdsUrl } from "./snapshot-crds.ts";
export * from "./snapshot-parameters.ts";
export * from "./snapshot-resources.ts";
export * from "./snapshot-well-known.ts";
export { resolveTemplate, TemplateError } from "./template.ts";
export * from "./topology.ts";
export * from "./uncertain-volumes.ts";
export * from "./volume-capability.ts";
export * from "./well-known.ts";
