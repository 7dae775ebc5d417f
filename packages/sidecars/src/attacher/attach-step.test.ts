import type { VolumeAttachment } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { decideAttachStep } from "./attach-step.ts";

const finalizer = "external-attacher/ebs-csi-aws-com";

const va = (given: { attached?: boolean; deleting?: boolean; finalizers?: string[] }): VolumeAttachment => ({
  metadata: {
    name: "va",
    finalizers: given.finalizers ?? [],
    ...(given.deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
  },
  spec: { attacher: "ebs.csi.aws.com", nodeName: "node", source: {} },
  ...(given.attached === undefined ? {} : { status: { attached: given.attached } }),
});

describe("the decision for an attachment", () => {
  it.each([
    ["a new one is attached", va({}), false, "attach"],
    ["also after a failure", va({ attached: false, finalizers: [finalizer] }), false, "attach"],
    ["an attached one is done", va({ attached: true, finalizers: [finalizer] }), false, "none"],
    ["unless the driver says otherwise", va({ attached: true, finalizers: [finalizer] }), true, "attach"],
    ["a deleted one is detached", va({ deleting: true, finalizers: [finalizer] }), false, "detach"],
    [
      "also when it never said attached",
      va({ attached: false, deleting: true, finalizers: [finalizer] }),
      false,
      "detach",
    ],
    ["without our finalizer nothing is owed", va({ deleting: true, finalizers: ["other/f"] }), false, "none"],
    ["unless the driver says otherwise", va({ deleting: true }), true, "detach"],
  ])("%s", (_, attachment, forced, step) => {
    expect(decideAttachStep(attachment, finalizer, forced).kind).toBe(step);
  });
});
