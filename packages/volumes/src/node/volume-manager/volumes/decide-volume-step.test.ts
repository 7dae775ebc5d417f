/** What comes next for a volume, as tables. Source: docs/behaviour/node-agent.md 6, 7. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import type { VolumeSpec } from "../../../framework/volume-spec.ts";
import type { ActualPod, ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";
import type { MountProgress } from "./decide-mount-step.ts";
import { decideVolumeStep, type ObservedVolume, verifyAnywayMs } from "./decide-volume-step.ts";
import { type VolumeOperation, wholeVolume } from "./volume-records.ts";

const decide = pureDecision(decideVolumeStep);
const plugin = { pluginName: "p/p" } as never;
const spec = { readOnly: false, inlineVolumeSpecForCsiMigration: false };
const wants = (uid: string): DesiredPod => ({
  pod: { metadata: { uid, name: uid } } as never,
  spec,
  outerNames: new Set(["data"]),
});
const desiredBy = (...uids: string[]): DesiredVolume => ({
  uniqueName: "v",
  plugin,
  attachable: true,
  deviceMountable: true,
  origin: undefined,
  pods: new Map(uids.map((uid) => [uid, wants(uid)])),
});
const mountOf = (podUID: string, state: ActualPod["state"]): ActualPod => ({
  podUID,
  volumeName: "n",
  state,
  path: `/${podUID}`,
  readOnly: false,
});
const actualWith = (device: ActualVolume["device"]["state"], ...pods: ActualPod[]): ActualVolume => ({
  uniqueName: "v",
  spec,
  plugin,
  attachable: true,
  origin: undefined,
  attachVerified: true,
  devicePath: "/dev/x",
  device: { state: device, path: "/device" },
  pods: new Map(pods.map((pod) => [pod.podUID, pod])),
});
const failure = (operation: VolumeOperation, subject: string, retryAtMs: number) =>
  new Map([[subject, { operation, failures: 1, retryAtMs, reason: "no" }]]);

const nothing: ObservedVolume = {
  nowMs: 1000,
  desired: undefined,
  actual: undefined,
  mayUnmount: new Set(),
  toRemount: new Set(),
  isDriverMissing: false,
  isPathDecided: true,
  hasAddedPods: true,
  attachment: { isReported: true, isListed: true, lookAtMs: undefined },
  failures: new Map(),
  size: undefined,
  republishAtMs: new Map(),
  mount: undefined,
  map: undefined,
  failed: undefined,
};
const wanted = { ...nothing, desired: desiredBy("a") };
const attached = { ...wanted, actual: actualWith("notMounted") };
const unwanted = {
  ...nothing,
  actual: actualWith("mounted", mountOf("a", "mounted")),
  mayUnmount: new Set(["a"]),
};
const unused = { ...nothing, actual: actualWith("mounted") };
const verify = { step: "verifyAttached", volume: desiredBy("a"), spec };
const begin = (uid: string, volume = desiredBy("a")) => ({ step: "beginMount", volume, pod: wants(uid) });

function check(name: string, observed: ObservedVolume, step: object) {
  it(name, () => expect(decide(observed)).toEqual(step));
}

describe("a volume that a pod wants (7.2)", () => {
  check("is looked for in the live Node once the cached one lists it", wanted, verify);
  check(
    "is not before volumesInUse was posted with it",
    { ...wanted, attachment: { ...wanted.attachment, isReported: false } },
    { step: "settle" },
  );
  const unlisted = { ...wanted, attachment: { isReported: true, isListed: false, lookAtMs: undefined } };
  check("that no cache lists is looked for later", unlisted, {
    step: "scheduleLook",
    atMs: 1000 + verifyAnywayMs,
  });
  const later = { ...unlisted, attachment: { ...unlisted.attachment, lookAtMs: 3000 } };
  check("and waits until then", later, { step: "wait", ms: 2000 });
  check("also when the timer is early", { ...later, nowMs: 2999 }, { step: "wait", ms: 1 });
  check("then the live Node is read", { ...later, nowMs: 3000 }, verify);
  check(
    "that cannot be attached needs no report",
    {
      ...wanted,
      desired: { ...desiredBy("a"), attachable: false },
      attachment: { isReported: false, isListed: false, lookAtMs: undefined },
    },
    { ...verify, volume: { ...desiredBy("a"), attachable: false } },
  );
  check(
    "whose check failed waits for its back-off",
    { ...wanted, failures: failure("verify_controller_attached_volume", wholeVolume, 1500) },
    { step: "wait", ms: 500 },
  );
  check(
    "is not taken on while its plugin changes over",
    { ...wanted, isPathDecided: false },
    { step: "settle" },
  );
  check(
    "and found on disk is confirmed before it is mounted again",
    { ...wanted, actual: { ...actualWith("uncertain", mountOf("a", "uncertain")), attachVerified: false } },
    verify,
  );
});

describe("an attached volume (6, 7.3)", () => {
  check("is mounted for its pod", attached, begin("a"));
  check("waits for its driver", { ...attached, isDriverMissing: true }, { step: "settle" });
  check(
    "that is uncertain is mounted again",
    { ...wanted, actual: actualWith("mounted", mountOf("a", "uncertain")) },
    begin("a"),
  );
  check(
    "that is mounted is left alone",
    { ...wanted, actual: actualWith("mounted", mountOf("a", "mounted")) },
    { step: "settle" },
  );
  check(
    "whose mount failed waits for its back-off",
    { ...attached, failures: failure("volume_mount", "a", 4000) },
    { step: "wait", ms: 3000 },
  );
  check(
    "does not wait for the back-off of another pod",
    { ...attached, desired: desiredBy("a", "b"), failures: failure("volume_mount", "a", 4000) },
    begin("b", desiredBy("a", "b")),
  );
  check(
    "does not wait for the back-off of another operation",
    { ...attached, failures: failure("volume_unmount", "a", 4000) },
    begin("a"),
  );
});

describe("a mount that no pod wants (6)", () => {
  check("is unmounted", unwanted, { step: "unmountForPod", pod: mountOf("a", "mounted") });
  check(
    "is unmounted, too, where it is uncertain",
    { ...unwanted, actual: actualWith("uncertain", mountOf("a", "uncertain")) },
    { step: "unmountForPod", pod: mountOf("a", "uncertain") },
  );
  check(
    "stays while its pod may use it, or too little is known of it",
    { ...unwanted, mayUnmount: new Set() },
    { step: "settle" },
  );
  check("waits for its driver", { ...unwanted, isDriverMissing: true }, { step: "settle" });
  check(
    "goes before another pod mounts the volume",
    { ...unwanted, desired: desiredBy("b") },
    { step: "unmountForPod", pod: mountOf("a", "mounted") },
  );
  check(
    "whose unmount failed waits for its back-off and is not forgotten",
    { ...unwanted, failures: failure("volume_unmount", "a", 1700) },
    { step: "wait", ms: 700 },
  );
  check("keeps the device mounted", { ...unwanted, mayUnmount: new Set() }, { step: "settle" });
});

describe("a volume without pods (6, 8)", () => {
  check("has its device unmounted", unused, { step: "unmountDevice", volume: actualWith("mounted") });
  check(
    "also where that is uncertain",
    { ...unused, actual: actualWith("uncertain") },
    { step: "unmountDevice", volume: actualWith("uncertain") },
  );
  check("not before every pod was looked at", { ...unused, hasAddedPods: false }, { step: "settle" });
  check("waits for its driver", { ...unused, isDriverMissing: true }, { step: "settle" });
  check(
    "whose unmount failed stays until its back-off is over",
    { ...unused, failures: failure("unmount_device", wholeVolume, 1200) },
    { step: "wait", ms: 200 },
  );
  check(
    "is forgotten once its device is not mounted",
    { ...nothing, actual: actualWith("notMounted") },
    {
      step: "forget",
    },
  );
  check("is forgotten where it never was", nothing, { step: "forget" });
  check("is not forgotten while a pod wants it", { ...attached, isDriverMissing: true }, { step: "settle" });
});

describe("a mount that has begun (7.3)", () => {
  const pod = wants("a");
  const mount: MountProgress = {
    volume: desiredBy("a"),
    pod,
    mounter: {} as never,
    isPlacementChecked: false,
    giveUp: new AbortController().signal,
    devicePath: undefined,
    isDeviceToGrow: false,
    isGrown: false,
    isMounted: false,
  };
  const at = (change: Partial<MountProgress>, actual = actualWith("notMounted")): ObservedVolume => ({
    ...attached,
    actual,
    mount: { ...mount, ...change },
  });
  const placed = {
    ...pod,
    spec: {
      ...spec,
      persistentVolume: { spec: { nodeAffinity: { required: { nodeSelectorTerms: [] } } } },
    },
  };
  const here = { devicePath: "/dev/x" };
  check("compares the node affinity first", at({ pod: placed as never }), { step: "checkPlacement" });
  check("once", at({ pod: placed as never, isPlacementChecked: true }), { step: "waitForDevice" });
  check("waits for the device", at({}), { step: "waitForDevice" });
  check("mounts the device", at(here), { step: "mountDevice" });
  check("mounts an uncertain device again", at(here, actualWith("uncertain")), { step: "mountDevice" });
  check(
    "grows what it has mounted before that counts as mounted",
    at({ ...here, isDeviceToGrow: true }, actualWith("uncertain")),
    { step: "growStaged" },
  );
  check("uses a device that is mounted", at(here, actualWith("mounted")), { step: "mountForPod" });
  check(
    "needs no device of a plugin that mounts none",
    at({ ...here, volume: { ...desiredBy("a"), deviceMountable: false } }),
    { step: "mountForPod" },
  );
  const mounted = { ...here, isMounted: true };
  check("grows where the device could not", at(mounted, actualWith("mounted")), { step: "growMounted" });
  check("is finished once it has grown", at({ ...mounted, isGrown: true }, actualWith("mounted")), {
    step: "finishMount",
  });
  const failed = { operation: "volume_mount", subject: "a", error: new Error("no") } as const;
  check("that failed is recorded", { ...at(here), failed }, { step: "recordFailure", failed });
});

describe("a volume that pods get as a device (7.4, 7.5)", () => {
  const blockSpec = { ...spec, persistentVolume: { metadata: { name: "n" }, spec: { volumeMode: "Block" } } };
  const blockPod = (uid: string): DesiredPod => ({ ...wants(uid), spec: blockSpec });
  const desired = { ...desiredBy("a"), pods: new Map([["a", blockPod("a")]]) };
  const mapOf = (podUID: string) => ({ ...mountOf(podUID, "mounted"), isBlock: true });
  const block = { volumeName: "n", devicePath: "" };
  const mapped = (...pods: ActualPod[]): ActualVolume => ({
    ...actualWith("mounted", ...pods),
    device: { state: "mounted", path: "/maps", block },
  });
  check(
    "is mapped for its pod",
    { ...attached, desired },
    { step: "beginMap", volume: desired, pod: blockPod("a") },
  );
  check(
    "whose mapping failed waits for its back-off",
    { ...attached, desired, failures: failure("map_volume", "a", 4000) },
    { step: "wait", ms: 3000 },
  );
  check(
    "is unmapped for a pod that does not want it",
    { ...unwanted, actual: mapped(mapOf("a")) },
    { step: "unmapForPod", pod: mapOf("a") },
  );
  check(
    "whose unmapping failed waits for its back-off",
    { ...unwanted, actual: mapped(mapOf("a")), failures: failure("unmap_volume", "a", 1700) },
    { step: "wait", ms: 700 },
  );
  check(
    "is torn down after its last pod",
    { ...nothing, actual: mapped() },
    {
      step: "unmapDevice",
      volume: mapped(),
    },
  );
  check(
    "whose teardown failed waits for its back-off",
    { ...nothing, actual: mapped(), failures: failure("unmap_device", wholeVolume, 1200) },
    { step: "wait", ms: 200 },
  );
  const mounting = failure("volume_mount", "a", 4000);
  check(
    "is torn down where it is wanted as a file system",
    { ...attached, actual: mapped(), failures: mounting },
    { step: "unmapDevice", volume: mapped() },
  );
  check(
    "is unmounted where it is mounted and wanted as a device",
    { ...attached, desired, actual: actualWith("mounted"), failures: failure("map_volume", "a", 4000) },
    { step: "unmountDevice", volume: actualWith("mounted") },
  );
  check(
    "stays set up while a pod wants it so",
    { ...attached, desired, actual: mapped(), failures: failure("map_volume", "a", 4000) },
    { step: "wait", ms: 3000 },
  );
});

describe("a volume that pods get as a device, under another PersistentVolume's name (decision 0031)", () => {
  // A machine lost its power while a pod had the device. Meanwhile its volume was converted: what was left at the place of the old name
  // kept the new one from its pod for ever, and was not torn down, since the pod wanted the volume.
  const named = (name: string) => ({
    ...spec,
    persistentVolume: { metadata: { name }, spec: { volumeMode: "Block" } },
  });
  const desired = { ...desiredBy("a"), pods: new Map([["a", { ...wants("a"), spec: named("pv-csi") }]]) };
  const left: ActualVolume = {
    ...actualWith("uncertain"),
    device: { state: "uncertain", path: "/maps", block: { volumeName: "pv", devicePath: "" } },
  };
  check(
    "is torn down at the place of the old name first",
    { ...attached, desired, actual: left, failures: failure("map_volume", "a", 4000) },
    { step: "unmapDevice", volume: left },
  );
});

describe("a volume that is staged under another PersistentVolume's name (decision 0031)", () => {
  // Its driver could not unstage it for a while, so that it was still staged when its volume was converted, which keeps its handle. The
  // pod's directory was then published from the new name's place, where nothing was staged: refused for ever.
  const getDeviceMountPath = ({ persistentVolume }: VolumeSpec) => `/pv/${persistentVolume?.metadata?.name}`;
  const staging = { newDeviceMounter: () => ({ getDeviceMountPath }) } as never;
  const named = (name: string) => ({ ...spec, persistentVolume: { metadata: { name } } });
  const pod = { ...wants("a"), spec: named("pv-csi") };
  const desired = { ...desiredBy("a"), plugin: staging, pods: new Map([["a", pod]]) };
  const stagedAt = (path: string, state: "mounted" | "uncertain", ...pods: ActualPod[]): ActualVolume => ({
    ...actualWith(state, ...pods),
    device: { state, path },
  });
  for (const state of ["mounted", "uncertain"] as const) {
    const left = stagedAt("/pv/pv", state);
    const seen = { ...attached, desired, actual: left };
    check(`is unstaged there first: ${state}`, seen, { step: "unmountDevice", volume: left });
    check(
      `is not staged again while that fails: ${state}`,
      { ...seen, failures: failure("unmount_device", wholeVolume, 1200) },
      { step: "wait", ms: 200 },
    );
  }
  const begins = { step: "beginMount", volume: desired, pod };
  check(
    "is mounted where its place is that of the pod's",
    { ...attached, desired, actual: stagedAt("/pv/pv-csi", "mounted") },
    begins,
  );
  check(
    "is mounted beside another pod's mount",
    { ...attached, desired, actual: stagedAt("/pv/pv", "mounted", mountOf("b", "mounted")) },
    begins,
  );
});

describe("a mounted volume whose sources have changed (docs/behaviour/pod-volumes.md 5)", () => {
  const mounted = { ...wanted, actual: actualWith("mounted", mountOf("a", "mounted")) };
  const changed = { ...mounted, toRemount: new Set(["a"]) };
  check("is left alone otherwise", mounted, { step: "settle" });
  check("is set up again", changed, begin("a"));
  check(
    "after its back-off, where that failed",
    { ...changed, failures: failure("volume_mount", "a", 1500) },
    { step: "wait", ms: 500 },
  );
  check(
    "not for a pod that does not want it any more",
    { ...unwanted, toRemount: new Set(["a"]) },
    { step: "unmountForPod", pod: mountOf("a", "mounted") },
  );
});

describe("a mounted volume that is set up again (docs/behaviour/csi-plugin.md 9.5)", () => {
  const mount = mountOf("a", "mounted");
  const mounted = { ...wanted, actual: actualWith("mounted", mount) };
  const due = { ...mounted, republishAtMs: new Map([["a", 900]]) };
  const republish = { step: "republish", volume: desiredBy("a"), pod: wants("a"), mount };
  check("is when it is due", due, republish);
  check(
    "is not for a pod that has it as a device",
    { ...due, actual: actualWith("mounted", { ...mount, isBlock: true }) },
    { step: "settle" },
  );
  check("waits until then", { ...due, nowMs: 800 }, { step: "wait", ms: 100 });
  check("is not for a pod that does not want it", { ...due, desired: undefined }, { step: "settle" });
  check("waits for its driver", { ...due, isDriverMissing: true }, { step: "settle" });
  check(
    "waits for its back-off",
    { ...due, failures: failure("volume_republish", "a", 1200) },
    { step: "wait", ms: 200 },
  );
  check(
    "is mounted instead when its mount is uncertain",
    { ...due, actual: actualWith("mounted", mountOf("a", "uncertain")) },
    begin("a"),
  );
  check(
    "comes after the mount of another pod",
    { ...due, desired: desiredBy("a", "b") },
    begin("b", desiredBy("a", "b")),
  );
});
