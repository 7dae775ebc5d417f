/** Whether a mounted volume grows, as a table. Source: docs/behaviour/node-agent.md 7.6. */
import { expect, it } from "vitest";
import type { ActualPod, ActualVolume } from "../actual-state.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";
import { decideGrowthStep, type ObservedSize } from "./decide-growth-step.ts";

const plugin = { pluginName: "p/p", nodeExpand: async () => true } as never;
const claimed = { spec: { claimRef: { name: "c", namespace: "n" } } };
const spec = { persistentVolume: claimed, readOnly: false, inlineVolumeSpecForCsiMigration: false };

const wants = (uid: string, over: Partial<DesiredPod["spec"]> = {}): DesiredPod => ({
  pod: { metadata: { uid, name: uid } } as never,
  spec: { ...spec, ...over },
  outerNames: new Set(["data"]),
});
const desiredBy = (...pods: DesiredPod[]): DesiredVolume => ({
  uniqueName: "v",
  plugin,
  attachable: true,
  deviceMountable: true,
  origin: undefined,
  pods: new Map(pods.map((pod) => [pod.pod.metadata.uid, pod])),
});
const mount = (podUID: string, over: Partial<ActualPod> = {}): ActualPod => ({
  podUID,
  volumeName: "n",
  state: "mounted",
  path: `/${podUID}`,
  readOnly: false,
  ...over,
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

const size = { lookAtMs: 5000, pending: undefined, isRefused: false };
const mounted: ObservedSize = {
  desired: desiredBy(wants("a")),
  actual: actualWith("mounted", mount("a")),
  size,
};
const look = { atMs: 5000, step: { step: "lookAtSize", volume: desiredBy(wants("a")), pod: wants("a") } };
const two = desiredBy(wants("a"), wants("b"));

it.each<[string, ObservedSize, object | undefined]>([
  ["its claim is read at its time", mounted, look],
  [
    "it grows when the claim waits for it",
    { ...mounted, size: { ...size, pending: "2Gi" } },
    {
      atMs: 5000,
      step: {
        step: "growInUse",
        volume: desiredBy(wants("a")),
        pod: wants("a"),
        mount: mount("a"),
        size: "2Gi",
      },
    },
  ],
  ["it was refused as it is used", { ...mounted, size: { ...size, isRefused: true } }, undefined],
  ["nothing has been mounted by this agent", { ...mounted, size: undefined }, undefined],
  ["no pod wants it", { ...mounted, desired: undefined }, undefined],
  ["it is not here", { ...mounted, actual: undefined }, undefined],
  ["its device is uncertain", { ...mounted, actual: actualWith("uncertain", mount("a")) }, undefined],
  [
    "a volume without a device does not wait for one",
    {
      ...mounted,
      desired: { ...desiredBy(wants("a")), deviceMountable: false },
      actual: actualWith("notMounted", mount("a")),
    },
    {
      ...look,
      step: { ...look.step, volume: { ...desiredBy(wants("a")), deviceMountable: false } },
    },
  ],
  [
    "its mount is uncertain",
    { ...mounted, actual: actualWith("mounted", mount("a", { state: "uncertain" })) },
    undefined,
  ],
  [
    "its pod only reads",
    { ...mounted, actual: actualWith("mounted", mount("a", { readOnly: true })) },
    undefined,
  ],
  [
    "its claim source only reads",
    { ...mounted, desired: desiredBy(wants("a", { readOnly: true })) },
    undefined,
  ],
  [
    "one pod reads, another writes",
    {
      ...mounted,
      desired: two,
      actual: actualWith("mounted", mount("a", { readOnly: true }), mount("b")),
    },
    { atMs: 5000, step: { step: "lookAtSize", volume: two, pod: wants("b") } },
  ],
  [
    "it is an inline volume that was translated",
    { ...mounted, desired: desiredBy(wants("a", { inlineVolumeSpecForCsiMigration: true })) },
    undefined,
  ],
  [
    "it is bound to no claim",
    { ...mounted, desired: desiredBy(wants("a", { persistentVolume: { spec: {} } })) },
    undefined,
  ],
  [
    "its plugin grows nothing",
    { ...mounted, desired: { ...desiredBy(wants("a")), plugin: { pluginName: "p/p" } as never } },
    undefined,
  ],
])("%s", (_, observed, due) => {
  expect(decideGrowthStep(observed)).toEqual(due);
});
