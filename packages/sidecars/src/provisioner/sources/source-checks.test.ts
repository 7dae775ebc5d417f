import type { PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import type { VolumeSnapshot, VolumeSnapshotContent } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { checkCloneClaims, cloneHandle } from "./clone-source.ts";
import { contentNameOf, snapshotHandle } from "./snapshot-source.ts";

const driver = "ebs.csi.aws.com";
const deleted = "2026-01-01T00:00:00Z";

type Change<T> = (object: T) => void;
/** A deep copy with one thing changed. */
function changed<T>(object: T, change: Change<T> | undefined): T {
  const copy = structuredClone(object);
  change?.(copy);
  return copy;
}
// Objects of tests, of any shape.
// biome-ignore lint/suspicious/noExplicitAny: tables change whatever they like
type Loose = any;

const claim: Loose = {
  metadata: { name: "clone", namespace: "default" },
  spec: { resources: { requests: { storage: "2Gi" } }, storageClassName: "gp2" },
};
const source: Loose = {
  metadata: { name: "src", namespace: "default", uid: "u1" },
  spec: { resources: { requests: { storage: "1Gi" } }, storageClassName: "gp2", volumeName: "pv-1" },
  status: { phase: "Bound" },
};
const volume: Loose = {
  metadata: { name: "pv-1" },
  spec: {
    csi: { driver, volumeHandle: "vol-1" },
    claimRef: { name: "src", namespace: "default", uid: "u1" },
  },
  status: { phase: "Bound" },
};

interface CloneCase {
  readonly name: string;
  readonly claim?: Change<Loose>;
  readonly source?: Change<Loose>;
  readonly volume?: Change<Loose>;
  readonly expected: string | RegExp;
}

const clones: readonly CloneCase[] = [
  { name: "a bound claim of the driver", expected: "vol-1" },
  {
    name: "an in-tree volume of the migrated plugin",
    volume: (pv) => {
      pv.spec.csi = undefined;
      pv.spec.awsElasticBlockStore = { volumeID: "aws://us-east-1a/vol-7" };
    },
    expected: "vol-7",
  },
  {
    name: "not one that is being deleted",
    source: (c) => (c.metadata.deletionTimestamp = deleted),
    expected: /being deleted/,
  },
  { name: "nor one that waits", source: (c) => (c.status.phase = "Pending"), expected: /must be Bound/ },
  {
    name: "nor one that lost its volume",
    source: (c) => (c.status.phase = "Lost"),
    expected: /must be Bound/,
  },
  {
    name: "nor one without a class",
    source: (c) => (c.spec.storageClassName = undefined),
    expected: /no storage class/,
  },
  {
    name: "nor a bigger one",
    source: (c) => (c.spec.resources.requests.storage = "3Gi"),
    expected: /at least as many/,
  },
  {
    name: "a volume bound to another claim is not its own",
    volume: (pv) => (pv.spec.claimRef.uid = "u2"),
    expected: /not bound to the volume/,
  },
  {
    name: "nor one that is released",
    volume: (pv) => (pv.status.phase = "Released"),
    expected: /not bound to the volume/,
  },
  {
    name: "nor one that is being deleted",
    volume: (pv) => (pv.metadata.deletionTimestamp = deleted),
    expected: /being deleted/,
  },
  {
    name: "nor another driver's",
    volume: (pv) => (pv.spec.csi.driver = "other"),
    expected: /not of the driver/,
  },
  {
    name: "nor one that is no CSI volume",
    volume: (pv) => (pv.spec.csi = undefined),
    expected: /not of the driver/,
  },
  {
    name: "block cannot become a file system",
    volume: (pv) => (pv.spec.volumeMode = "Block"),
    expected: /volume mode/,
  },
  { name: "nor a file system block", claim: (c) => (c.spec.volumeMode = "Block"), expected: /volume mode/ },
];

describe("a clone of a claim", () => {
  it.each(clones)("$name", ({ expected, ...change }) => {
    const ask = () => {
      const wanted = changed(claim, change.claim) as PersistentVolumeClaim;
      const from = changed(source, change.source) as PersistentVolumeClaim;
      checkCloneClaims(wanted, from);
      return cloneHandle(driver, wanted, from, changed(volume, change.volume) as PersistentVolume);
    };
    if (typeof expected === "string") expect(ask()).toBe(expected);
    else expect(ask).toThrow(expected);
  });
});

const snapshot: Loose = {
  metadata: { name: "snap", namespace: "default", uid: "s1" },
  spec: { source: {} },
  status: { boundVolumeSnapshotContentName: "content", readyToUse: true, restoreSize: "1Gi" },
};
const content: Loose = {
  metadata: { name: "content" },
  spec: {
    driver,
    volumeSnapshotRef: { name: "snap", namespace: "default", uid: "s1" },
    sourceVolumeMode: "Filesystem",
  },
  status: { snapshotHandle: "snap-1" },
};

interface RestoreCase {
  readonly name: string;
  readonly claim?: Change<Loose>;
  readonly snapshot?: Change<Loose>;
  readonly content?: Change<Loose>;
  readonly preventModeConversion?: boolean;
  readonly expected: string | RegExp;
}

const allow = (c: Loose) => {
  c.spec.sourceVolumeMode = "Block";
  c.metadata.annotations = { "snapshot.storage.kubernetes.io/allow-volume-mode-change": "true" };
};

const restores: readonly RestoreCase[] = [
  { name: "a ready snapshot of the driver", expected: "snap-1" },
  {
    name: "not one that is being deleted",
    snapshot: (s) => (s.metadata.deletionTimestamp = deleted),
    expected: /being deleted/,
  },
  {
    name: "unless the restore was begun before",
    claim: (c) => (c.metadata.finalizers = ["longshore.dev/provisioning"]),
    snapshot: (s) => (s.metadata.deletionTimestamp = deleted),
    expected: "snap-1",
  },
  {
    name: "nor one that is not bound",
    snapshot: (s) => (s.status.boundVolumeSnapshotContentName = undefined),
    expected: /not bound/,
  },
  { name: "nor one without any status", snapshot: (s) => (s.status = undefined), expected: /not bound/ },
  {
    name: "nor one whose content points elsewhere",
    content: (c) => (c.spec.volumeSnapshotRef.uid = "s2"),
    expected: /not bound/,
  },
  {
    name: "nor another driver's",
    content: (c) => (c.spec.driver = "other"),
    expected: /of the driver other/,
  },
  {
    name: "nor one that is not ready",
    snapshot: (s) => (s.status.readyToUse = false),
    expected: /not ready/,
  },
  { name: "nor one without a handle", content: (c) => (c.status = undefined), expected: /no handle/ },
  {
    name: "nor one that needs more room",
    snapshot: (s) => (s.status.restoreSize = "3Gi"),
    expected: /at least as many/,
  },
  {
    name: "one of unknown size is tried",
    snapshot: (s) => (s.status.restoreSize = undefined),
    expected: "snap-1",
  },
  {
    name: "another volume mode is refused",
    content: (c) => (c.spec.sourceVolumeMode = "Block"),
    expected: /allow-volume-mode-change/,
  },
  {
    name: "also when the claim asks for block",
    claim: (c) => (c.spec.volumeMode = "Block"),
    expected: /allow-volume-mode-change/,
  },
  { name: "unless an administrator allows it", content: allow, expected: "snap-1" },
  {
    name: "or the check is off",
    content: (c) => (c.spec.sourceVolumeMode = "Block"),
    preventModeConversion: false,
    expected: "snap-1",
  },
  {
    name: "a snapshot of unknown mode is tried",
    content: (c) => (c.spec.sourceVolumeMode = undefined),
    expected: "snap-1",
  },
];

describe("a volume from a snapshot", () => {
  it.each(restores)("$name", ({ expected, preventModeConversion = true, ...change }) => {
    const ask = () => {
      const from = changed(snapshot, change.snapshot) as VolumeSnapshot;
      const wanted = changed(claim, change.claim) as PersistentVolumeClaim;
      contentNameOf(wanted, from);
      const question = {
        driverName: driver,
        claim: wanted,
        preventModeConversion,
      };
      return snapshotHandle(question, from, changed(content, change.content) as VolumeSnapshotContent);
    };
    if (typeof expected === "string") expect(ask()).toBe(expected);
    else expect(ask).toThrow(expected);
  });
});
