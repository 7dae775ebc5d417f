/** Every step of a pass over a claim of which snapshots are made. */
import type { PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideSourceClaim } from "./decide-source-claim.ts";

describe("the steps over a source claim", () => {
  const decide = pureDecision(decideSourceClaim);
  const claim = (finalizers: readonly string[]) =>
    ({ metadata: { name: "c", finalizers } }) as unknown as Stored<PersistentVolumeClaim>;
  const ours = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
  it.each([
    ["held, and all its snapshots are ready", claim(["x", ours]), false, "removeFinalizer"],
    ["held, and one is not ready", claim([ours]), true, "settle"],
    ["not held", claim(["x"]), false, "settle"],
  ] as const)("%s", (_, of, isInUse, step) => {
    expect(decide({ claim: of, isInUse }).step).toBe(step);
  });
});
