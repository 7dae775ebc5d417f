import type { PersistentVolume } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { healthEvent, listedHealth, monitoredVolume } from "./monitored-volume.ts";

const driver = "ebs.csi.aws.com";
const csi = { csi: { driver, volumeHandle: "vol-1" } };
const inTree = { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-9" } };
const volume = (
  source: object,
  over: { annotations?: Record<string, string>; phase?: string; uid?: string } = {},
) =>
  ({
    metadata: { name: "pv", annotations: over.annotations ?? {} },
    spec: { ...source, claimRef: { name: "data", namespace: "default", uid: over.uid ?? "u-1" } },
    status: { phase: over.phase ?? "Bound" },
  }) as PersistentVolume;
const migrated = { annotations: { "pv.kubernetes.io/migrated-to": driver } };

describe("the volumes that are looked at", () => {
  it.each<[string, PersistentVolume, string | undefined]>([
    ["a bound volume of the driver", volume(csi), "vol-1"],
    ["an in-tree one that is migrated to it", volume(inTree, migrated), "vol-9"],
    ["not an in-tree one that is not", volume(inTree), undefined],
    ["not one that no claim has", volume(csi, { phase: "Available" }), undefined],
    ["not one of another driver", volume({ csi: { driver: "other", volumeHandle: "v" } }), undefined],
    [
      "not one that is being deleted",
      { ...volume(csi), metadata: { name: "pv", deletionTimestamp: "2026-01-01T00:00:00Z" } },
      undefined,
    ],
    [
      "not one that cannot be translated",
      volume({ awsElasticBlockStore: { volumeID: "aws://" } }, migrated),
      undefined,
    ],
    [
      "not one of another plugin, whatever its annotation",
      volume({ gcePersistentDisk: { pdName: "d" } }, migrated),
      undefined,
    ],
    ["not one without a claim", { ...volume(csi), spec: csi }, undefined],
  ])("%s", (_, pv, handle) => {
    expect(monitoredVolume(pv, driver)?.volumeHandle).toBe(handle);
  });
});

describe("the event after a look", () => {
  const bad = { abnormal: true, message: "disk is slow" };
  const good = { abnormal: false, message: "" };
  it.each([
    ["abnormal: reported", bad, false, "VolumeConditionAbnormal"],
    ["still abnormal: reported again", bad, true, "VolumeConditionAbnormal"],
    ["well, as before: nothing", good, false, undefined],
    ["well again: reported", good, true, "VolumeConditionNormal"],
    ["nothing known: nothing", undefined, true, undefined],
  ])("%s", (_, health, wasAbnormal, reason) => {
    expect(healthEvent(health, wasAbnormal)?.reason).toBe(reason);
  });
});

describe("the listed condition of a handle", () => {
  const health = (message: string) => ({ abnormal: true, message });
  const listed = new Map([
    ["projects/p/zones/z/disks/a", health("a")],
    ["projects/p/zones/z/disks/b", health("b in z")],
    ["projects/p/zones/y/disks/b", health("b in y")],
  ]);
  it.each([
    ["as it is", "projects/p/zones/z/disks/a", "a"],
    ["with a project that the translation left open", "projects/UNSPECIFIED/zones/z/disks/b", "b in z"],
    ["with everything left open, where one fits", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/a", "a"],
    ["not where several fit", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/b", undefined],
    ["not a volume that is not listed", "projects/p/zones/z/disks/c", undefined],
  ])("%s", (_, handle, message) => {
    expect(listedHealth(handle, listed)?.message).toBe(message);
  });
});
