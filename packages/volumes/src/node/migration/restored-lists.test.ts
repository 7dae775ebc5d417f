/** What a Node from a backup lists as attached, against what is mounted. Source: docs/playbooks/control-plane-restored-mid-crossing.md. */
import type { Node, Stored } from "@longshore/kube";
import { uncertainVolumesAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { correctedLists } from "./restored-lists.ts";

const ebsInTree = "kubernetes.io/aws-ebs/aws://z/vol-1";
const ebsByCsi = "kubernetes.io/csi/ebs.csi.aws.com^vol-1";
const gceInTree = "kubernetes.io/gce-pd/d";
const gceByCsi = "kubernetes.io/csi/pd.csi.storage.gke.io^projects/p/zones/z/disks/d";
const vmdk = "[datastore] kubevols/d.vmdk";
const vsphereInTree = `kubernetes.io/vsphere-volume/${vmdk}`;
const vsphereByCsi = `kubernetes.io/csi/csi.vsphere.vmware.com^${vmdk}`;
const native = "kubernetes.io/csi/other.example.com^vol-1";
const flexVolume = "example.com/disk/vol-1";

const nodeWith = (listed: readonly string[], uncertain: readonly string[] = []) =>
  ({
    metadata: { name: "n", annotations: { [uncertainVolumesAnnotation]: uncertain.join("\n") } },
    status: { volumesAttached: listed.map((name) => ({ name, devicePath: `/dev/${name}` })) },
  }) as unknown as Stored<Node>;
const mounted = (...names: readonly string[]) =>
  names.map((uniqueName) => ({ uniqueName, devicePath: `/dev/${uniqueName}` }));
const corrected = (node: Stored<Node>, ...names: readonly string[]) => {
  const lists = correctedLists(node, mounted(...names));
  return lists && { listed: lists.listed.map(({ name }) => name), uncertain: lists.uncertain };
};

describe("lists of attached volumes that are older than what is mounted", () => {
  it.each([
    [
      "a disk that is mounted by CSI is not attached in-tree",
      [ebsInTree, flexVolume],
      [ebsByCsi],
      [flexVolume],
    ],
    ["also a path of a datastore", [vsphereInTree], [vsphereByCsi], []],
    ["whatever the zone and project of its name", [gceInTree], [gceByCsi], []],
    ["a disk that is mounted in-tree is attached in-tree", [ebsByCsi], [ebsInTree], [ebsByCsi, ebsInTree]],
  ])("%s", (_rule, listed, names, expected) => {
    expect(corrected(nodeWith(listed), ...names)).toEqual({ listed: expected, uncertain: [] });
  });

  it("neither may a disk that is mounted by CSI be attached in-tree", () => {
    expect(corrected(nodeWith([], [ebsInTree, flexVolume]), ebsByCsi)).toEqual({
      listed: [],
      uncertain: [flexVolume],
    });
  });

  it("a disk that is mounted in-tree is certainly attached, with its device", () => {
    const lists = correctedLists(nodeWith([], [ebsInTree]), mounted(ebsInTree));
    expect(lists).toEqual({ listed: mounted(ebsInTree).map(toListed), uncertain: [] });
  });

  it.each([
    ["what is listed is mounted", [ebsInTree], [ebsInTree]],
    ["nothing is mounted of what is listed in-tree", [ebsInTree], []],
    ["other disks are mounted", [ebsInTree], [gceByCsi, native]],
    ["a disk that is mounted by CSI is not listed: its VolumeAttachment is the controller's", [], [ebsByCsi]],
    ["volumes of plugins that cannot migrate are the controller's", [], [flexVolume, native]],
  ])("are right where %s", (_rule, listed, names) => {
    expect(corrected(nodeWith(listed), ...names)).toBeUndefined();
  });
});

function toListed({ uniqueName, devicePath }: { readonly uniqueName: string; readonly devicePath: string }) {
  return { name: uniqueName, devicePath };
}
