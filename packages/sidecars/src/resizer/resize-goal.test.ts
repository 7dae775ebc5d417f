import type { PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import { storageResizerAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import type { Attempt } from "./claim-memory.ts";
import { type ResizeGoal, resizeGoal } from "./resize-goal.ts";

const driver = { name: "ebs.csi.aws.com", inTreeName: "kubernetes.io/aws-ebs" };

interface Sizes {
  readonly request: string;
  readonly has: string;
  readonly volume: string;
  readonly allocated?: string;
  readonly state?: string;
  readonly conditions?: readonly string[];
}

const claimWith = (sizes: Sizes, annotations = {}): PersistentVolumeClaim => ({
  metadata: { name: "data", namespace: "default", uid: "u-1", annotations },
  spec: { resources: { requests: { storage: sizes.request } }, volumeName: "pv-1" },
  status: {
    phase: "Bound",
    capacity: { storage: sizes.has },
    ...(sizes.allocated === undefined ? {} : { allocatedResources: { storage: sizes.allocated } }),
    ...(sizes.state === undefined ? {} : { allocatedResourceStatuses: { storage: sizes.state } }),
    conditions: (sizes.conditions ?? []).map((type) => ({ type, status: "True" })),
  },
});

const volumeWith = (storage: string, spec: Partial<PersistentVolume["spec"]> = {}): PersistentVolume => ({
  metadata: { name: "pv-1" },
  spec: {
    capacity: { storage },
    claimRef: { namespace: "default", name: "data", uid: "u-1" },
    csi: { driver: driver.name, volumeHandle: "vol-1" },
    ...spec,
  } as NonNullable<PersistentVolume["spec"]>,
});

const decide = (
  sizes: Sizes,
  over: { attempt?: Attempt; trivial?: boolean; inUse?: boolean; nowMs?: number } = {},
) =>
  resizeGoal({
    driver,
    claim: claimWith(sizes),
    volume: volumeWith(sizes.volume),
    attempt: over.attempt ?? {},
    trivial: over.trivial ?? false,
    isInUse: over.inUse ?? false,
    nowMs: over.nowMs ?? 0,
  });

const none: ResizeGoal = { kind: "none" };
const expand = (size: string, begin = true): ResizeGoal => ({ kind: "expand", size, begin });

describe("the size to reach", () => {
  it.each<[string, Sizes, ResizeGoal]>([
    ["has what it asks for", { request: "1Gi", has: "1Gi", volume: "1Gi" }, none],
    ["asks for the same in another unit", { request: "1024Mi", has: "1Gi", volume: "1Gi" }, none],
    ["asks for more", { request: "2Gi", has: "1Gi", volume: "1Gi" }, expand("2Gi")],
    [
      "asks again after an earlier expansion",
      { request: "9Gi", has: "5Gi", volume: "5Gi", allocated: "5Gi" },
      expand("9Gi"),
    ],
    [
      "was begun, and may be under way",
      { request: "5Gi", has: "3Gi", volume: "3Gi", allocated: "10Gi", state: "ControllerResizeInProgress" },
      expand("10Gi", false),
    ],
    [
      "was impossible, and less is asked for",
      { request: "5Gi", has: "3Gi", volume: "3Gi", allocated: "10Gi", state: "ControllerResizeInfeasible" },
      expand("5Gi"),
    ],
    [
      "was impossible, and the same is asked for still",
      { request: "9Gi", has: "3Gi", volume: "3Gi", allocated: "9Gi", state: "ControllerResizeInfeasible" },
      expand("9Gi", false),
    ],
    [
      "has grown, which its claim does not know yet",
      { request: "5Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "ControllerResizeInProgress" },
      expand("5Gi", false),
    ],
    [
      "has grown more than is asked for by now",
      { request: "4Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "ControllerResizeInProgress" },
      expand("5Gi", false),
    ],
    [
      "waits for its node",
      { request: "5Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "NodeResizePending" },
      none,
    ],
    [
      "waits for its node, and more is asked for",
      { request: "9Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "NodeResizePending" },
      none,
    ],
    [
      "is being grown by its node, and more is asked for",
      { request: "9Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "NodeResizeInProgress" },
      none,
    ],
    [
      "waits for its node with a volume that lost its capacity",
      { request: "9Gi", has: "3Gi", volume: "3Gi", allocated: "5Gi", state: "NodeResizePending" },
      expand("5Gi", false),
    ],
    [
      "failed on its node",
      { request: "5Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "NodeResizeInfeasible" },
      expand("5Gi", false),
    ],
    [
      "failed on its node, and less is asked for: the disk cannot shrink",
      { request: "4Gi", has: "3Gi", volume: "5Gi", allocated: "5Gi", state: "NodeResizeInfeasible" },
      expand("5Gi", false),
    ],
    [
      "was begun on a server that has since lost the state",
      { request: "5Gi", has: "3Gi", volume: "7Gi", allocated: "7Gi" },
      expand("7Gi"),
    ],
    [
      "grew outside, with an old allocation",
      { request: "5Gi", has: "3Gi", volume: "7Gi", allocated: "3Gi" },
      expand("5Gi"),
    ],
  ])("of a claim that %s", (_, sizes, step) => expect(decide(sizes)).toEqual(step));

  it("is the new one once the driver has surely refused the one that was begun", () => {
    const sizes: Sizes = {
      request: "5Gi",
      has: "3Gi",
      volume: "3Gi",
      allocated: "10Gi",
      state: "ControllerResizeInProgress",
    };
    expect(decide(sizes, { attempt: { refused: true } })).toEqual(expand("5Gi"));
  });

  it("can be less where only nodes expand, since nothing has grown", () => {
    const sizes: Sizes = {
      request: "4Gi",
      has: "3Gi",
      volume: "5Gi",
      allocated: "5Gi",
      state: "NodeResizeInfeasible",
    };
    expect(decide(sizes, { trivial: true })).toEqual(expand("4Gi"));
  });
});

describe("the classic sequence, where the server keeps no state", () => {
  it.each<[string, Sizes, ResizeGoal]>([
    ["begins", { request: "2Gi", has: "1Gi", volume: "1Gi" }, expand("2Gi")],
    [
      "goes on after a crash before the volume was stored",
      { request: "2Gi", has: "1Gi", volume: "1Gi", conditions: ["Resizing"] },
      expand("2Gi"),
    ],
    [
      "asks the driver again whether the node has to do something",
      { request: "2Gi", has: "1Gi", volume: "2Gi", conditions: ["Resizing"] },
      expand("2Gi"),
    ],
    [
      "leaves the rest to the kubelet",
      { request: "2Gi", has: "1Gi", volume: "2Gi", conditions: ["FileSystemResizePending"] },
      none,
    ],
    [
      "begins again when more is asked for meanwhile",
      { request: "3Gi", has: "1Gi", volume: "2Gi", conditions: ["FileSystemResizePending"] },
      expand("3Gi"),
    ],
  ])("%s", (_, sizes, step) => expect(decide(sizes)).toEqual(step));
});

describe("when to wait", () => {
  const sizes: Sizes = { request: "2Gi", has: "1Gi", volume: "1Gi" };

  it("waits with what is impossible", () => {
    const attempt = { infeasible: { request: "2Gi", untilMs: 300 } };
    expect(decide(sizes, { attempt, nowMs: 100 })).toEqual({ kind: "wait", delayMs: 200 });
    expect(decide(sizes, { attempt, nowMs: 300 })).toEqual(expand("2Gi"));
  });

  it("does not wait with another size", () => {
    const attempt = { infeasible: { request: "9Gi", untilMs: 300 } };
    expect(decide(sizes, { attempt })).toEqual(expand("2Gi"));
  });

  it("waits for pods where the driver does not expand in use", () => {
    expect(decide(sizes, { attempt: { inUse: true }, inUse: true })).toEqual({ kind: "inUse" });
    expect(decide(sizes, { attempt: { inUse: true }, inUse: false })).toEqual(expand("2Gi"));
    expect(decide(sizes, { attempt: {}, inUse: true })).toEqual(expand("2Gi"));
  });
});

describe("whose volume it is", () => {
  const sizes: Sizes = { request: "2Gi", has: "1Gi", volume: "1Gi" };
  const ebs = { csi: undefined, awsElasticBlockStore: { volumeID: "vol-1" } } as never;
  const gce = { csi: undefined, gcePersistentDisk: { pdName: "pd-1" } } as never;
  it.each<[string, Partial<PersistentVolume["spec"]>, Record<string, string>, boolean]>([
    ["a CSI volume of the driver", {}, {}, true],
    ["a CSI volume of another driver", { csi: { driver: "x", volumeHandle: "v" } } as never, {}, false],
    [
      "a CSI volume of another driver whose claim names ours",
      { csi: { driver: "x", volumeHandle: "v" } } as never,
      { [storageResizerAnnotation]: driver.name },
      false,
    ],
    ["a migrated volume", ebs, { [storageResizerAnnotation]: driver.name }, true],
    ["an in-tree volume", ebs, { [storageResizerAnnotation]: "kubernetes.io/aws-ebs" }, false],
    ["an in-tree volume for which no resizer is named yet", ebs, {}, false],
    ["a volume of another plugin", gce, { [storageResizerAnnotation]: driver.name }, false],
    ["a volume that is bound to another claim", { claimRef: { uid: "u-2" } } as never, {}, false],
  ])("%s", (_, spec, annotations, isOurs) => {
    const step = resizeGoal({
      driver,
      claim: claimWith(sizes, annotations),
      volume: volumeWith("1Gi", spec),
      attempt: {},
      trivial: false,
      isInUse: false,
      nowMs: 0,
    });
    expect(step).toEqual(isOurs ? expand("2Gi") : none);
  });

  it("has no goal while the claim is not bound", () => {
    const claim = claimWith(sizes);
    const pending = { ...claim, status: { ...claim.status, phase: "Pending" } };
    expect(
      resizeGoal({
        driver,
        claim: pending,
        volume: volumeWith("1Gi"),
        attempt: {},
        trivial: false,
        isInUse: false,
        nowMs: 0,
      }),
    ).toEqual(none);
  });
});
