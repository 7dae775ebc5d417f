import type { CSINode, PersistentVolume, Stored } from "@longshore/kube";
import { migratedPluginsAnnotation } from "@longshore/storage";
import { expect, it } from "vitest";
import { ContractWatch, diskOf, type WorldView } from "./contract-watch.ts";

const plugin = "kubernetes.io/cinder";
const node = "node-1";
const metadata = { uid: "1", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
const call = { plugin, diskId: "d", nodeName: node } as const;
const attached = { diskId: "d", nodeName: node, devicePath: "/dev/loop0" };
const mounted = (target: string) =>
  new Map([[node, [{ source: "/dev/loop0", target, readOnly: false, fsType: "ext4" }]]]);
const csiMount = "/n/node-1/plugins/kubernetes.io/csi/pv/p/globalmount";
const inTreeMount = "/n/node-1/plugins/kubernetes.io/cinder/mounts/d";

function world(parts: Partial<WorldView>): WorldView {
  return { attachments: [], mounts: new Map(), csiNodes: [], volumes: [], disks: new Set(["d"]), ...parts };
}

function listed(): Stored<CSINode> {
  const annotations = { [migratedPluginsAnnotation]: `kubernetes.io/aws-ebs,${plugin}` };
  return { metadata: { ...metadata, name: node, annotations }, spec: { drivers: [] } } as Stored<CSINode>;
}

function boundImage(image: string): Stored<PersistentVolume> {
  const spec = { rbd: { monitors: ["m"], pool: "rbd", image } };
  return {
    metadata: { ...metadata, name: "pv" },
    spec,
    status: { phase: "Bound" },
  } as Stored<PersistentVolume>;
}

it.each([
  ["C1", "is mounted by csi", { attachments: [attached], mounts: mounted(csiMount) }],
  ["C5", `whose node lists ${plugin}`, { attachments: [attached], csiNodes: [listed()] }],
  [
    "C5",
    "is mounted in-tree",
    { attachments: [attached], mounts: mounted(inTreeMount), csiNodes: [listed()] },
  ],
  ["C2", "was detached while mounted", { mounts: mounted(inTreeMount) }],
  ["C2", "at once", { attachments: [attached, { ...attached, nodeName: "node-2" }] }],
  ["C3", "the disk image-1 of bound volume pv is gone", { volumes: [boundImage("image-1")] }],
])("%s: %s", (rule, words, parts) => {
  const watch = new ContractWatch();
  watch.asked({ ...call, op: "attach", path: "in-tree" });
  watch.check(world(parts));
  expect(watch.violations.filter((violation) => violation.startsWith(`${rule}: `)).join()).toContain(words);
});

it("C1: was attached by in-tree and detached by csi", () => {
  const watch = new ContractWatch();
  watch.asked({ ...call, op: "attach", path: "in-tree" });
  watch.check(world({ attachments: [attached] }));
  expect(watch.attacherOf("d", node)).toEqual({ path: "in-tree", plugin });
  watch.asked({ ...call, op: "detach", path: "csi" });
  watch.check(world({}));
  expect(watch.violations).toEqual(["C1: d@node-1 was attached by in-tree and detached by csi"]);
});

it("C6: a volume whose translation was stored", () => {
  const watch = new ContractWatch();
  const volume = boundImage("d");
  watch.check(world({ volumes: [volume] }));
  watch.check(world({ volumes: [structuredClone(volume)] }));
  expect(watch.violations).toEqual([]);
  const translated = { ...volume, spec: { csi: { driver: "rbd.csi.ceph.com", volumeHandle: "d" } } };
  watch.check(world({ volumes: [translated] }));
  expect(watch.violations).toEqual(["C6: the source of volume pv was changed"]);
});

it("what keeps the contract is no violation, whatever the plugin and however its disks are named", () => {
  const watch = new ContractWatch();
  watch.asked({ ...call, op: "attach", path: "csi" });
  const disks = new Set(["d", "rbd/image-1"]);
  const volumes = [boundImage("image-1")];
  watch.check(
    world({ attachments: [attached], mounts: mounted(csiMount), csiNodes: [listed()], disks, volumes }),
  );
  expect(watch.violations).toEqual([]);
});

it("C2: a detach of what is mounted is asked for, whether or not the provider refuses it", () => {
  const watch = new ContractWatch();
  const parts = { attachments: [attached], mounts: mounted(csiMount) };
  watch.asked({ ...call, op: "detach", path: "csi" }, world({ attachments: [attached] }));
  watch.asked({ ...call, op: "attach", path: "csi" }, world(parts));
  expect(watch.violations).toEqual([]);
  watch.asked({ ...call, op: "detach", path: "csi" }, world(parts));
  expect(watch.violations).toEqual([`C2: csi asks to detach d@node-1, which is mounted at ${csiMount}`]);
});

it.each([
  ["aws://us-east-1a/vol-1", "vol-1", "vol-1"],
  ["image", "pool/image", "pool/image"],
  ["share", "g#a#share", "g#a#share"],
  ["g#a#share#share#default", "g#a#share", "g#a#share"],
  ["g#a#share2#share2#default", "g#a#share", undefined],
  ["#a#share#data#default", "g#a#share", "g#a#share"],
  ["#b#share#data#default", "g#a#share", undefined],
])("the disk of the handle %s among %s is %s", (handle, disk, expected) => {
  expect(diskOf(handle, { disks: new Set([disk]) })).toBe(expected);
});

it("C1: either path goes on with what was attached when the API server was restored, once", () => {
  const watch = new ContractWatch();
  watch.asked({ ...call, op: "attach", path: "csi" });
  watch.check(world({ attachments: [attached] }));
  watch.restored([], []);
  watch.attachAnswered({ ...call, op: "attach", path: "in-tree" }, world({ attachments: [attached] }));
  expect(watch.attacherOf("d", node)?.path).toBe("in-tree");
  expect(watch.violations).toEqual([]);
  watch.asked({ ...call, op: "detach", path: "csi" });
  watch.check(world({}));
  expect(watch.violations).toEqual(["C1: d@node-1 was attached by in-tree and detached by csi"]);
});

it("C5: what the CSINode of a restored API server lists is not the word of its node, until that has listed something else", () => {
  const watch = new ContractWatch();
  const parts = { attachments: [attached], mounts: mounted(inTreeMount) };
  const isBroken = () => watch.violations.length > 0;
  watch.asked({ ...call, op: "attach", path: "in-tree" });
  watch.check(world(parts));
  watch.restored([], [listed()]);
  watch.check(world({ ...parts, csiNodes: [listed()] }));
  expect(isBroken()).toBe(false);
  watch.check(world({ ...parts, csiNodes: [{ ...listed(), metadata: { ...metadata, name: node } }] }));
  expect(isBroken()).toBe(false);
  watch.check(world({ ...parts, csiNodes: [listed()] }));
  expect(watch.violations.join()).toContain("C5: d is mounted in-tree");
});
