/** Names of the sidecars below `longshore run`. */
export const sidecarVerbs = [
  "sidecars",
  "provisioner",
  "attacher",
  "resizer",
  "snapshotter",
  "snapshot-controller",
  "health-monitor",
  "node-driver-registrar",
  "cluster-driver-registrar",
  "liveness-probe",
] as const;
