import { expect, test } from "vitest";
import type { DriverCall } from "../layout/driver-calls.ts";
import { clusterPlugin, type PluginName } from "../layout/plugins.ts";
import { absentInTree, evidenceFor } from "./evidence.ts";

const answered = (rpc: string, code = "OK", volumeId = "v"): DriverCall =>
  ({ place: "node-1", atMs: 0, rpc, code, volumeId }) as DriverCall;
const calls = [
  answered("NodePublishVolume"),
  answered("NodeUnpublishVolume"),
  answered("DeleteVolume", "INTERNAL"),
  answered("DeleteVolume", "OK", "another"),
];

test("a call counts for its volume alone, and only when it succeeded", () => {
  expect(evidenceFor("delete", "v", calls, clusterPlugin("rbd"))).toEqual({
    calls: ["NodeUnpublishVolume"],
    missing: ["DeleteVolume"],
  });
});

test.each<[PluginName, string, string, boolean]>([
  ["azure-file", "rg#acct#share#disk#uuid#ns", "#acct#share#pv-1#default", true],
  ["azure-file", "rg#acct#share#", "rg#acct#other#pv-1#default", false],
  ["azure-file", "rg#acct#share#", "rg#other#share#pv-1#default", false],
  ["azure-file", "share", "rg##share#", false],
  ["gce-pd", "projects/p/zones/z-1/disks/d", "projects/UNSPECIFIED/zones/z-1/disks/d", true],
  ["gce-pd", "projects/p/zones/z-2/disks/d", "projects/UNSPECIFIED/zones/z-1/disks/d", false],
  ["aws-ebs", "vol-1", "vol-1", true],
  ["aws-ebs", "vol-1", "aws://z/vol-1", false],
])("%s: the driver's %s and the translated %s name one volume: %s", (name, own, translated, isSame) => {
  const made = [answered("CreateVolume", "OK", own)];
  const { missing } = evidenceFor("provision", translated, made, clusterPlugin(name));
  expect(missing.length === 0).toBe(isSame);
});

test("a driver whose volumes nodes attach themselves owes no call of the controller", () => {
  expect(evidenceFor("inline", "v", calls, clusterPlugin("aws-ebs")).missing).toEqual([
    "ControllerPublishVolume",
  ]);
  expect(evidenceFor("inline", "v", calls, clusterPlugin("portworx-volume")).missing).toEqual([]);
});

test("what in-tree volumes of a plugin do not have is known", () => {
  expect(absentInTree(clusterPlugin("aws-ebs"))).toEqual({});
  expect(Object.keys(absentInTree(clusterPlugin("vsphere-volume")))).toEqual(["topology", "expand"]);
  expect(Object.keys(absentInTree(clusterPlugin("azure-file")))).toEqual([
    "topology",
    "attach",
    "snapshot",
    "block",
  ]);
  expect(Object.keys(absentInTree(clusterPlugin("rbd")))).toEqual(["topology"]);
});
