import type { PersistentVolumeClaim } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { shouldEnqueueClaim } from "./claim-triggers.ts";

const intent = "longshore.dev/provisioning";
const before: PersistentVolumeClaim = {
  metadata: { name: "c", resourceVersion: "1", finalizers: ["x"], labels: { a: "1", b: "2" } },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  status: { phase: "Pending" },
};
const after = (over: object, more: object = {}): PersistentVolumeClaim => ({
  ...before,
  ...more,
  metadata: { ...before.metadata, resourceVersion: "2", ...over },
});

describe("a changed claim", () => {
  it.each<[string, PersistentVolumeClaim, boolean]>([
    ["our intent put on", after({ finalizers: ["x", intent] }), false],
    [
      "with members in another order",
      after({ finalizers: ["x", intent], labels: { b: "2", a: "1" } }),
      false,
    ],
    ["with another's finalizer at the same time", after({ finalizers: ["x", intent, "y"] }), true],
    ["with a label at the same time", after({ finalizers: ["x", intent], labels: { a: "1" } }), true],
    [
      "with a deletion at the same time",
      after({ finalizers: ["x", intent], deletionTimestamp: "now" }),
      true,
    ],
    [
      "with its volume",
      after({ finalizers: ["x", intent] }, { spec: { ...before.spec, volumeName: "v" } }),
      true,
    ],
    ["with its phase", after({ finalizers: ["x", intent] }, { status: { phase: "Bound" } }), true],
    ["anything else", after({ labels: { a: "2" } }), true],
    ["a resync", before, true],
  ])("%s: %s", (_, changed, wakes) => {
    expect(shouldEnqueueClaim(before, changed)).toBe(wakes);
    expect(shouldEnqueueClaim(changed, before)).toBe(wakes);
  });
});
