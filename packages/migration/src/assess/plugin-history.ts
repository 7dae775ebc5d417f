/**
 * What a version of Kubernetes does with the volumes of each in-tree plugin.
 * Source: docs/behaviour/migration-controllers.md D1.
 */

/** Served by the code in the tree, redirected to its driver by default, or gone without a replacement. */
export type PluginState = "in-tree" | "redirected" | "gone";

/** The minor versions of Kubernetes 1 at which a plugin has changed; left out: it never has. */
interface PluginHistory {
  readonly redirected?: number;
  readonly gone?: number;
}

const history: Readonly<Record<string, PluginHistory>> = {
  "kubernetes.io/aws-ebs": { redirected: 23 },
  "kubernetes.io/gce-pd": { redirected: 23 },
  "kubernetes.io/azure-disk": { redirected: 23 },
  "kubernetes.io/azure-file": { redirected: 24 },
  "kubernetes.io/cinder": { redirected: 21 },
  "kubernetes.io/vsphere-volume": { redirected: 25 },
  "kubernetes.io/portworx-volume": { redirected: 31 },
  // Its migration was alpha only, and went together with the plugin.
  "kubernetes.io/rbd": { gone: 31 },
  "kubernetes.io/cephfs": { gone: 31 },
  "kubernetes.io/glusterfs": { gone: 26 },
  "kubernetes.io/quobyte": { gone: 25 },
  "kubernetes.io/storageos": { gone: 25 },
  "kubernetes.io/flocker": { gone: 25 },
  "kubernetes.io/scaleio": { gone: 22 },
};

/** Sources of plugins that Kubernetes has removed without a driver, by their field, with the plugin's name. */
export const removedSources: Readonly<Record<string, string>> = {
  cephfs: "kubernetes.io/cephfs",
  glusterfs: "kubernetes.io/glusterfs",
  quobyte: "kubernetes.io/quobyte",
  storageos: "kubernetes.io/storageos",
  flocker: "kubernetes.io/flocker",
  scaleIO: "kubernetes.io/scaleio",
};

/** What Kubernetes 1.`minor` does with the plugin by default. */
export function pluginStateAt(inTreeName: string, minor: number): PluginState {
  const { redirected, gone } = history[inTreeName] ?? {};
  if (gone !== undefined && minor >= gone) return "gone";
  return redirected !== undefined && minor >= redirected ? "redirected" : "in-tree";
}

/** The minor version of `1.27`, `v1.27.3` or `v1.27.3-gke.100`; undefined for other text. */
export function minorVersionOf(text: string | undefined): number | undefined {
  const minor = /^v?1\.(\d{1,3})(?:\+?$|[.+-])/.exec(text ?? "")?.[1];
  return minor === undefined ? undefined : Number(minor);
}
