import type { Node, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { WorldView } from "../contract-watch.ts";
import { NodeStatusWatch } from "./status-watch.ts";

const name = "node-1";
const attachment = { diskId: "d", nodeName: name, devicePath: "/dev/loop0" };
const uniqueName = "kubernetes.io/csi/ebs.csi.aws.com^d";
const detach = {
  op: "detach",
  path: "in-tree",
  plugin: "kubernetes.io/aws-ebs",
  diskId: "d",
  nodeName: name,
} as const;

function world(attached: boolean, targets: readonly string[] = []): WorldView {
  const mounts = targets.map((target) => ({ source: "/dev/loop0", target, readOnly: false, fsType: "ext4" }));
  return {
    attachments: attached ? [attachment] : [],
    mounts: new Map([[name, mounts]]),
    csiNodes: [],
    volumes: [],
    disks: new Set(["d"]),
  };
}

function nodes(status: { readonly attached?: boolean; readonly inUse?: boolean }): readonly Stored<Node>[] {
  const volumesAttached = status.attached === true ? [{ name: uniqueName, devicePath: "" }] : [];
  const volumesInUse = status.inUse === true ? [uniqueName] : [];
  return [{ metadata: { name }, status: { volumesAttached, volumesInUse } } as unknown as Stored<Node>];
}

function watched(plugin = "kubernetes.io/aws-ebs") {
  const breaks: string[] = [];
  let nowMs = 0;
  const watch = new NodeStatusWatch(
    () => nowMs,
    () => ({ path: "csi", plugin }),
    (what) => breaks.push(what),
  );
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { watch, breaks, pass };
}

describe("what a Node says of disks", () => {
  it("a disk that is detached is off the list", () => {
    const { watch, breaks } = watched();
    watch.detaches(detach, world(true), nodes({}));
    expect(breaks).toEqual([]);
    watch.detaches(detach, world(true), nodes({ attached: true }));
    expect(breaks).toEqual(["d is detached from node-1 while its Node lists it as attached"]);
  });

  it("a disk that an attacher detaches may be listed again: its VolumeAttachment is being deleted", () => {
    const { watch, breaks } = watched();
    watch.detaches({ ...detach, path: "csi" }, world(true), nodes({ attached: true }));
    expect(breaks).toEqual([]);
  });

  it("a disk that is listed was attached", () => {
    const { watch, breaks } = watched();
    watch.check(world(true), nodes({ attached: true }));
    watch.check(world(false), nodes({ attached: true }));
    expect(breaks).toEqual([]);
    const other = watched();
    other.watch.check(world(false), nodes({ attached: true }));
    expect(other.breaks).toEqual(["Node node-1 lists d, which was never attached to it"]);
  });

  it("a disk that is mounted was in use before", () => {
    const { watch, breaks } = watched();
    watch.check(world(true, ["/a"]), nodes({ attached: true, inUse: true }));
    watch.check(world(true, ["/a"]), nodes({ attached: true })); // A Node that was made again.
    expect(breaks).toEqual([]);
    watch.check(world(true, ["/a", "/b"]), nodes({ attached: true }));
    expect(breaks).toEqual(["d is mounted at /b, and Node node-1 does not say that it is in use"]);
  });

  it("a Node of a restored API server need not name what is being mounted, but what is mounted later", () => {
    const { watch, breaks, pass } = watched();
    watch.check(world(true, []), nodes({ attached: true, inUse: true }));
    watch.restored();
    watch.check(world(true, ["/a"]), nodes({ attached: true }));
    expect(breaks).toEqual([]);
    pass(1_000);
    watch.check(world(true, ["/a", "/b"]), nodes({ attached: true }));
    expect(breaks).toEqual(["d is mounted at /b, and Node node-1 does not say that it is in use"]);
  });

  it("what a node attaches by itself is in no list", () => {
    const { watch, breaks } = watched("kubernetes.io/rbd");
    watch.check(world(true, ["/a"]), nodes({}));
    expect(breaks).toEqual([]);
  });
});
