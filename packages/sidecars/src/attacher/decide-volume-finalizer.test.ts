/** When the attacher's finalizer goes from a volume, as a table. */
import type { PersistentVolume, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { anInTreeVolume } from "../testing/world.ts";
import { decideVolumeFinalizer } from "./decide-volume-finalizer.ts";

const driverName = "ebs.csi.aws.com";
const finalizer = "external-attacher/ebs-csi-aws-com";
const migrated = { "pv.kubernetes.io/migrated-to": driverName };

const volume = (metadata: object, isInTree = true) =>
  ({
    metadata: { name: "pv-1", uid: "u", resourceVersion: "1", finalizers: [finalizer], ...metadata },
    spec: isInTree ? anInTreeVolume().spec : { csi: { driver: driverName, volumeHandle: "vol-1" } },
  }) as Stored<PersistentVolume>;
const deletionTimestamp = "2026-01-01T00:00:00Z";

describe("the finalizer of a volume (docs/behaviour/sidecars.md 3.3)", () => {
  it.each([
    ["is removed from a volume that is being deleted", volume({ deletionTimestamp }, false), false, true],
    ["is removed from one that is no longer migrated", volume({}), false, true],
    [
      "is removed from one that another driver has now",
      volume({ annotations: { "pv.kubernetes.io/migrated-to": "d" } }),
      false,
      true,
    ],
    ["stays while an attachment names the volume", volume({ deletionTimestamp }, false), true, false],
    ["stays on a migrated volume", volume({ annotations: migrated }), false, false],
    ["stays on a CSI volume", volume({}, false), false, false],
    ["is not there", volume({ deletionTimestamp, finalizers: ["other/f"] }, false), false, false],
  ])("%s", (_, pv, isAttached, removed) => {
    const { step } = pureDecision(decideVolumeFinalizer)({ volume: pv, driverName, isAttached });
    expect(step).toBe(removed ? "removeVolumeFinalizer" : "settle");
  });
});
