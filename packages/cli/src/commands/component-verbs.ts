/** Names of the components below `longshore run` that are neither sidecars nor of a distribution. */
export const componentVerbs = [
  "apiserver",
  "disk-cloud",
  "controller-manager",
  "csi-controller",
  "csi-node",
  "node-agent",
  "reference-driver",
] as const;
