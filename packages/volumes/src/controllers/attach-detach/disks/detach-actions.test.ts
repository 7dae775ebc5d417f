/** What the actions of a detach leave in the actual state. Source: docs/behaviour/controllers.md A7; decision 0003, row 17. */
import type { Pod, Stored } from "@longshore/kube";
import { afterEach, expect, it } from "vitest";
import { ControlPlane } from "../../../testing/control-plane.ts";
import { ActualState } from "../actual-state.ts";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import { DesiredState } from "../desired-state.ts";
import { DiskOperations } from "../disk-operations.ts";
import { detachActions } from "./detach-actions.ts";
import type { ObservedDisk } from "./observe-disk.ts";

const pluginName = "kubernetes.io/aws-ebs";
const uniqueName = `${pluginName}/vol-a`;
const spec = { readOnly: false, inlineVolumeSpecForCsiMigration: false };
const identity = "kubernetes.io/csi/ebs.csi.aws.com^vol-a";

let plane: ControlPlane;
afterEach(() => plane.stop());

/** A confirmed attachment that is off the list, and whose detach is under way. */
function detaching() {
  plane = new ControlPlane();
  const desired = new DesiredState();
  const actual = new ActualState();
  const operations = new DiskOperations();
  const context = { env: plane.env, desired, actual, operations } as unknown as AttachDetachContext;
  const volume = { nodeName: "n1", uniqueName, identity, pluginName, spec };
  const attachment = actual.put({ ...volume, volumeName: "vol-a", devicePath: "", confirmed: true });
  attachment.detachTried = true;
  actual.setReported(attachment, false);
  const scope = { identity, nodeName: "n1", isShared: false };
  const of = { uniqueName, startedAtMs: 0, attachmentName: undefined };
  const operation = operations.begin("detach", scope, of);
  const isListed = () => actual.report("n1").listed.length > 0;
  const fail = () => {
    const pass = { key: identity, signal: plane.signal };
    const step = { step: "failDetach", operation, message: "no answer" } as const;
    detachActions(context).failDetach(step, {} as ObservedDisk, pass);
  };
  const want = () => {
    const pod = { metadata: { name: "p", uid: "u" } } as Stored<Pod>;
    const inTree = { inTreePlugin: pluginName, inTreeName: volume.uniqueName };
    const wanted = { kind: "wanted", podVolumeName: "v", ...inTree, decidedIn: 0 } as const;
    desired.setPod("default/p", { pod, nodeName: "n1", volumes: [{ ...wanted, ...volume }] });
  };
  return { isListed, fail, want };
}

it("a failed detach lists the volume again", () => {
  const { isListed, fail } = detaching();
  fail();
  expect(isListed()).toBe(true);
});

it("0003, 17: a failed detach does not list what a pod wants again: it is attached again before", () => {
  const { isListed, fail, want } = detaching();
  want();
  fail();
  expect(isListed()).toBe(false);
});
