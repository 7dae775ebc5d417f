import { describe, expect, it } from "vitest";
import { contractSigns, type SignsView } from "./contract-signs.ts";
import { crossingSubject } from "./crossing-subject.ts";

const subject = crossingSubject("aws-ebs");
const inTree = "kubernetes.io/aws-ebs/aws://us-east-1a/vol-1";
const csi = "kubernetes.io/csi/ebs.csi.aws.com^vol-1";
const node = (name: string, ...attached: readonly string[]) => ({
  metadata: { name },
  status: { volumesAttached: attached.map((volume) => ({ name: volume, devicePath: "" })) },
});
const pv = (accessModes = ["ReadWriteOnce"]) => ({
  metadata: { name: "pv1", uid: "pv-uid" },
  spec: {
    accessModes,
    awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" },
    claimRef: { namespace: "d", name: "c", uid: "claim-uid" },
  },
});
const claim = { metadata: { namespace: "d", name: "c", uid: "claim-uid" }, spec: { volumeName: "pv1" } };
const attachment = (nodeName: string, attached = true) => ({
  metadata: { name: "csi-1" },
  spec: { attacher: subject.driverName, nodeName, source: { persistentVolumeName: "pv1" } },
  status: { attached },
});
const view = (over: Partial<Record<keyof SignsView, readonly object[]>> = {}): SignsView =>
  ({ nodes: [], volumes: [pv()], claims: [claim], attachments: [], ...over }) as unknown as SignsView;
const signs = (now: SignsView, before = view()) =>
  contractSigns(subject, before, now).map(({ rule, object }) => `${rule} ${object}`);

describe("no sign is", () => {
  it.each<readonly [string, SignsView]>([
    ["a volume in-tree on one node", view({ nodes: [node("n1", inTree)] })],
    ["a volume by CSI on one node", view({ nodes: [node("n1", csi)], attachments: [attachment("n1")] })],
    [
      "an attachment that is asked for only",
      view({ nodes: [node("n1", inTree)], attachments: [attachment("n2", false)] }),
    ],
    [
      "a volume of many nodes on two",
      view({ volumes: [pv(["ReadWriteMany"])], nodes: [node("n1", inTree), node("n2", inTree)] }),
    ],
    ["a volume that was deleted with its claim", view({ volumes: [], claims: [] })],
  ])("%s", (_what, now) => {
    expect(signs(now)).toEqual([]);
  });

  it("what was missing when the run began", () => {
    const before = view({ volumes: [] });
    expect(signs(view({ volumes: [], attachments: [attachment("n1")] }), before)).toEqual([]);
  });
});

describe("a sign of", () => {
  it.each<readonly [string, SignsView]>([
    ["C1 PersistentVolume pv1", view({ nodes: [node("n1", inTree)], attachments: [attachment("n1")] })],
    ["C1 PersistentVolume pv1", view({ nodes: [node("n1", inTree, csi)] })],
    ["C2 PersistentVolume pv1", view({ nodes: [node("n1", inTree), node("n2", inTree)] })],
    ["C2 PersistentVolume pv1", view({ nodes: [node("n1", inTree)], attachments: [attachment("n2")] })],
    ["C3 PersistentVolumeClaim d/c", view({ volumes: [] })],
    ["C4 VolumeAttachment csi-1", view({ volumes: [], claims: [], attachments: [attachment("n1")] })],
  ])("%s", (sign, now) => {
    expect(signs(now)).toEqual([sign]);
  });
});
