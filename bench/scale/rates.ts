/** How often what changes at rest: a node's lease, in milliseconds. */
export const leaseMs = 10_000;
/** A kubelet's report of a node on which nothing has changed, in milliseconds. */
export const reportMs = 5 * 60_000;
/** A change of a pod's status: a probe, a restart, in milliseconds. Assumed; it is more than most clusters have. */
export const podChangeMs = 10 * 60_000;
