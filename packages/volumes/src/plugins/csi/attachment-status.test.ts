/** What each state of a VolumeAttachment says to who waits for it: the tables of docs/behaviour/csi-plugin.md 5. */
import { describe, expect, it } from "vitest";
import { attachVerdict, detachVerdict } from "./attachment-status.ts";

describe("the verdict on an object", () => {
  const stored = (status: object | undefined, deleting = false) =>
    ({
      metadata: {
        name: "csi-1",
        uid: "u",
        resourceVersion: "1",
        ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
      },
      spec: {},
      ...(status === undefined ? {} : { status }),
    }) as never;
  it.each([
    ["gone", undefined, "failed", "done"],
    ["nothing yet", stored(undefined), "wait", "wait"],
    ["attached", stored({ attached: true }), "done", "wait"],
    [
      "attached, with an old error",
      stored({ attached: true, attachError: { message: "x" } }),
      "done",
      "wait",
    ],
    ["an attach error", stored({ attached: false, attachError: { message: "x" } }), "failed", "wait"],
    ["being deleted", stored({ attached: true }, true), "failed", "wait"],
    ["a detach error", stored({ attached: true, detachError: { message: "x" } }, true), "failed", "failed"],
  ])("%s", (_name, attachment, attach, detach) => {
    expect(attachVerdict(attachment).kind).toBe(attach);
    expect(detachVerdict(attachment, false).kind).toBe(detach);
  });
});
