/** A disk that is in use on a node as one volume is not used as another one meanwhile (contract.md C1). */
import type { PersistentVolume } from "@longshore/kube";
import { expect, it } from "vitest";
import { specOfPersistentVolume, specOfVolume, type VolumeSpec } from "../framework/volume-spec.ts";
import type { ActualVolume } from "./volume-manager/actual-state.ts";
import { MountsInFlight } from "./volume-manager/volumes/mounts-in-flight.ts";
import { requireFreeDisk } from "./volume-manager/volumes/volume-places.ts";

const volumeOf = (uniqueName: string, spec: VolumeSpec) => ({ uniqueName, spec });
const persistent = (uniqueName: string, spec: PersistentVolume["spec"]) =>
  volumeOf(uniqueName, specOfPersistentVolume({ metadata: { name: "pv" }, spec: spec ?? {} }, false));
const csi = (driver: string, volumeHandle: string, volumeAttributes = {}) =>
  persistent(`kubernetes.io/csi/${driver}^${volumeHandle}`, {
    csi: { driver, volumeHandle, volumeAttributes },
  });

const portworx = persistent("kubernetes.io/portworx-volume/some-pod-pv", {
  portworxVolume: { volumeID: "7" },
});
const nativePortworx = csi("pxd.portworx.com", "7");
const ebs = persistent("kubernetes.io/aws-ebs/aws://a/vol-1", {
  awsElasticBlockStore: { volumeID: "aws://a/vol-1" },
});
const inlineEbs = volumeOf(
  "kubernetes.io/aws-ebs/vol-1",
  specOfVolume({ name: "data", awsElasticBlockStore: { volumeID: "vol-1" } }),
);
const nativeEbs = csi("ebs.csi.aws.com", "vol-1");

/** The volumes of a node, each with its device in this state. */
function aNode(
  device: "notMounted" | "uncertain" | "mounted",
  ...volumes: { uniqueName: string; spec: VolumeSpec }[]
) {
  const entry = (volume: (typeof volumes)[number]) =>
    ({ ...volume, device: { state: device, path: "" }, pods: new Map() }) as unknown as ActualVolume;
  return { actual: { volumes: () => volumes.map(entry) }, mounts: new MountsInFlight() };
}

it.each([
  ["Portworx", portworx, nativePortworx],
  ["EBS", ebs, nativeEbs],
  ["an inline EBS disk", inlineEbs, nativeEbs],
])(
  "the disk of %s is not used by one path while it is or may be in use by the other",
  (_what, one, other) => {
    for (const [here, wanted] of [
      [one, other],
      [other, one],
    ] as const) {
      for (const state of ["uncertain", "mounted"] as const) {
        const message = `the disk of ${wanted.uniqueName} is or may be in use as ${here.uniqueName}: that must go first`;
        expect(() => requireFreeDisk(aNode(state, here), wanted)).toThrow(message);
      }
      expect(() => requireFreeDisk(aNode("notMounted", here), wanted)).not.toThrow();
    }
  },
);

it("a mount that is under way counts: of two that begin at once the second waits", () => {
  const node = aNode("notMounted", portworx, nativePortworx);
  node.mounts.begin(portworx.uniqueName, "a");
  expect(() => requireFreeDisk(node, portworx)).not.toThrow();
  node.mounts.begin(nativePortworx.uniqueName, "b");
  expect(() => requireFreeDisk(node, nativePortworx)).toThrow("must go first");
  node.mounts.end(portworx.uniqueName);
  expect(() => requireFreeDisk(node, nativePortworx)).not.toThrow();
});

it("other disks, and volumes of drivers that take over from no plugin, are not in the way", () => {
  expect(() => requireFreeDisk(aNode("mounted", portworx), csi("pxd.portworx.com", "8"))).not.toThrow();
  expect(() => requireFreeDisk(aNode("mounted", ebs), nativePortworx)).not.toThrow();
  const own = csi("example.com", "7");
  expect(() => requireFreeDisk(aNode("mounted", own, portworx), csi("example.com", "9"))).not.toThrow();
});
