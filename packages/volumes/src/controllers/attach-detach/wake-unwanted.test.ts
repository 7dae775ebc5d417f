/** Which disks wait for the pods of a node (docs/behaviour/controllers.md A7). */
import { describe, expect, it } from "vitest";
import { ActualState } from "./actual-state.ts";
import { type AttachDetachContext, wakeUnwanted } from "./attach-detach-context.ts";
import { DesiredState } from "./desired-state.ts";

const identity = "kubernetes.io/csi/ebs.csi.aws.com^vol-a";
const inTreeName = "kubernetes.io/aws-ebs/vol-a";

describe("wakeUnwanted", () => {
  it("wakes a disk that pods want in the other form: the form attached is detached first", () => {
    const actual = new ActualState();
    const desired = new DesiredState();
    const attached = { nodeName: "n1", uniqueName: inTreeName, identity, volumeName: "vol-a" };
    actual.put({
      ...attached,
      pluginName: "kubernetes.io/aws-ebs",
      spec: undefined,
      devicePath: "",
      confirmed: true,
    });
    desired.setPod("default/p", {
      pod: { metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1" } },
      nodeName: "n1",
      volumes: [
        {
          kind: "wanted",
          podVolumeName: "v",
          uniqueName: identity,
          identity,
          pluginName: "kubernetes.io/csi",
          spec: {},
          inTreePlugin: "kubernetes.io/aws-ebs",
          decidedIn: 1,
        },
      ],
    } as never);
    const woken: string[] = [];
    const wakeDisk = (disk: string) => woken.push(disk);
    wakeUnwanted({ actual, desired, wakeDisk } as unknown as AttachDetachContext, "n1");
    expect(woken).toEqual([identity]);
  });
});
