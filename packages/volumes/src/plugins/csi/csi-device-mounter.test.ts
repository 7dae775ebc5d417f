/** Where the CSI plugin stages volumes. */
import { expect, it } from "vitest";
import { stagingPath } from "./csi-device-mounter.ts";

// An agent that starts reads the names in `pv`. It did not find the volume, which was detached while it was staged.
it.each([
  ["pvc-1", "pvc-1"],
  ["csi.vsphere.vmware.com-[ds] kubevols/a.vmdk", "csi.vsphere.vmware.com-[ds] kubevols~a.vmdk"],
])(
  "PersistentVolume %s has a directory directly in pv (csi-plugin.md 8.1; contract.md C2)",
  (name, directory) => {
    expect(stagingPath("/kubelet", name)).toBe(
      `/kubelet/plugins/kubernetes.io/csi/pv/${directory}/globalmount`,
    );
  },
);
