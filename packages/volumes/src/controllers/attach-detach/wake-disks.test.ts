/** Which disks are looked at when pods of a node have been decided (docs/behaviour/controllers.md A7). */
import { describe, expect, it } from "vitest";
import { ActualState } from "./actual-state.ts";
import { type AttachDetachContext, wakeUnwanted, wakeWanted } from "./attach-detach-context.ts";
import { DesiredState } from "./desired-state.ts";
import { DiskOperations } from "./disk-operations.ts";

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

describe("wakeWanted", () => {
  interface World {
    readonly actual: ActualState;
    readonly desired: DesiredState;
    readonly operations: DiskOperations;
  }
  const attach = (actual: ActualState, fields: object = {}) =>
    actual.put({
      nodeName: "n1",
      uniqueName: identity,
      identity,
      volumeName: "vol-a",
      pluginName: "kubernetes.io/csi",
      spec: undefined,
      devicePath: "",
      confirmed: true,
      ...fields,
    });
  const want = (desired: DesiredState, name: string, nodeName: string) =>
    desired.setPod(`default/${name}`, {
      pod: { metadata: { name, namespace: "default", uid: name, resourceVersion: "1" } },
      nodeName,
      volumes: [
        {
          kind: "wanted",
          podVolumeName: "v",
          uniqueName: identity,
          identity,
          pluginName: "kubernetes.io/csi",
          spec: {},
          decidedIn: 1,
        },
      ],
    } as never);
  const woken = (change: (world: World) => void) => {
    const world = {
      actual: new ActualState(),
      desired: new DesiredState(),
      operations: new DiskOperations(),
    };
    want(world.desired, "p", "n1");
    change(world);
    const disks: string[] = [];
    const context = { ...world, wakeDisk: (disk: string) => disks.push(disk) };
    wakeWanted(context as unknown as AttachDetachContext, "n1", { uniqueName: identity, identity });
    return disks;
  };

  it("leaves a disk alone that is attached as it is wanted: a restart looks at no such disk", () => {
    expect(woken(({ actual }) => attach(actual))).toEqual([]);
  });

  it.each<[string, (world: World) => void]>([
    ["is not attached", () => {}],
    ["is attached to another node", ({ actual }) => attach(actual, { nodeName: "n2" })],
    ["is attached under another name", ({ actual }) => attach(actual, { uniqueName: inTreeName })],
    ["may be attached", ({ actual }) => attach(actual, { confirmed: false })],
    ["is not in the node's status", ({ actual }) => actual.setReported(attach(actual), false)],
    [
      "is attached twice",
      ({ actual }) => {
        attach(actual);
        attach(actual, { nodeName: "n2", confirmed: false });
      },
    ],
    [
      "was to be detached",
      ({ actual }) => {
        attach(actual).detachRequestedAtMs = 1;
      },
    ],
    [
      "is perhaps detached",
      ({ actual }) => {
        attach(actual).detachTried = true;
      },
    ],
    [
      "is wanted elsewhere as well",
      ({ actual, desired }) => {
        attach(actual);
        want(desired, "q", "n2");
      },
    ],
    [
      "has an operation under way",
      ({ actual, operations }) => {
        attach(actual);
        const scope = { identity, nodeName: "n1", isShared: false };
        operations.begin("attach", scope, {
          uniqueName: identity,
          startedAtMs: 0,
          attachmentName: undefined,
        });
      },
    ],
  ])("wakes a disk that %s", (_name, change) => {
    expect(woken(change)).toEqual([identity]);
  });
});
