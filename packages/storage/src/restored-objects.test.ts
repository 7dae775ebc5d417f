import type { Node, Stored } from "@longshore/kube";
import { expect, it } from "vitest";
import { restoredObjects } from "./restored-objects.ts";
import { uncertainVolumesOf } from "./uncertain-volumes.ts";

const csi = { name: "kubernetes.io/csi/ebs.csi.aws.com^vol-1", devicePath: "" };
const ebs = { name: "kubernetes.io/aws-ebs/aws://a/vol-2", devicePath: "/dev/xvdba" };
const flex = { name: "flexvolume-example.com/disk/three", devicePath: "/dev/sdc" };

function aNode(volumesAttached?: readonly { name: string; devicePath: string }[], uncertain?: string) {
  const annotations = { other: "kept", ...(uncertain && { "longshore.dev/volumes-uncertain": uncertain }) };
  const metadata = { name: "n", uid: "u", resourceVersion: "7", creationTimestamp: "", annotations };
  const status = { volumesInUse: [ebs.name], ...(volumesAttached && { volumesAttached }) };
  return { apiVersion: "v1", kind: "Node", metadata, spec: {}, status } as unknown as Stored<Node>;
}

const restored = (node: Stored<Node>) => restoredObjects.nodes?.(node) as Stored<Node>;

it("of a restored Node nothing is listed as attached that CSI does not attach: it may be attached", () => {
  const node = restored(aNode([csi, ebs, flex], "kubernetes.io/gce-pd/four"));
  expect(node.status).toEqual({ volumesInUse: [ebs.name], volumesAttached: [csi] });
  expect(uncertainVolumesOf(node)).toEqual([flex.name, ebs.name, "kubernetes.io/gce-pd/four"]);
  expect(node.metadata.annotations?.other).toBe("kept");
});

it.each([
  ["nothing", undefined],
  ["what CSI attaches", [csi]],
])("a restored Node that lists %s is left as it is", (_what, listed) => {
  const node = aNode(listed);
  expect(restored(node)).toBe(node);
});

it("what a restored Node lists and has in its record is in the record once", () => {
  expect(uncertainVolumesOf(restored(aNode([ebs], ebs.name)))).toEqual([ebs.name]);
});
