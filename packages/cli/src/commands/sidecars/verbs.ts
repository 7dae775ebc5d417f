/** Names of the sidecars below `longshore run`. */
export const sidecarVerbs = ["provisioner", "attacher", "node-driver-registrar"] as const;
