/** Where a crossing can be run. */
export const platformNames = ["embedded", "manual", "kubeadm", "openshift", "gardener"] as const;

/** One of them. */
export type PlatformName = (typeof platformNames)[number];
