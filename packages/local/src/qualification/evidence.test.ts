import { expect, test } from "vitest";
import type { DriverCall } from "../layout/driver-calls.ts";
import { clusterPlugin } from "../layout/plugins.ts";
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

test("a driver whose volumes nodes attach themselves owes no call of the controller", () => {
  expect(evidenceFor("inline", "v", calls, clusterPlugin("aws-ebs")).missing).toEqual([
    "ControllerPublishVolume",
  ]);
  expect(evidenceFor("inline", "v", calls, clusterPlugin("portworx-volume")).missing).toEqual([]);
});

test("what in-tree volumes of a plugin do not have is known", () => {
  expect(absentInTree(clusterPlugin("aws-ebs"))).toEqual({});
  expect(Object.keys(absentInTree(clusterPlugin("azure-file")))).toEqual(["topology", "attach", "snapshot"]);
  expect(Object.keys(absentInTree(clusterPlugin("rbd")))).toEqual(["topology"]);
});
