/** Each rule of docs/behaviour/controllers.md Part D, as a row of a table. */
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { decideClaimProtection } from "./decide-claim-protection.ts";
import { decideVolumeProtection } from "./decide-volume-protection.ts";

const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };

describe("a claim", () => {
  const decide = pureDecision(decideClaimProtection);
  const finalizers = ["example.dev/other", "kubernetes.io/pvc-protection"];
  const claim = (metadata: object) => ({
    metadata: { name: "a", namespace: "default", uid: "1", resourceVersion: "1", ...metadata },
  });
  const released = claim({ ...deleted, finalizers });
  it.each([
    ["without the finalizer gets it", { claim: claim({}), isUsed: false }, "addFinalizer"],
    ["also while it is used", { claim: claim({}), isUsed: true }, "addFinalizer"],
    ["with it is left alone", { claim: claim({ finalizers }), isUsed: false }, "settle"],
    ["being deleted without it goes", { claim: claim(deleted), isUsed: false }, "settle"],
    ["stays while the cache shows a pod", { claim: released, isUsed: true }, "settle"],
    ["is asked about live", { claim: released, isUsed: false }, "listPods"],
    [
      "stays while only a live list shows a pod",
      { claim: released, isUsed: false, isUsedLive: true },
      "waitForCache",
    ],
    ["is read again", { claim: released, isUsed: false, isUsedLive: false }, "readClaim"],
    [
      "that has gone meanwhile",
      { claim: released, isUsed: false, isUsedLive: false, live: { claim: undefined } },
      "settle",
    ],
    [
      "whose name has another claim now",
      { claim: released, isUsed: false, isUsedLive: false, live: { claim: claim({ uid: "2", finalizers }) } },
      "settle",
    ],
    [
      "whose finalizer went meanwhile",
      { claim: released, isUsed: false, isUsedLive: false, live: { claim: claim(deleted) } },
      "settle",
    ],
    [
      "that no pod uses is let go",
      { claim: released, isUsed: false, isUsedLive: false, live: { claim: released } },
      "removeFinalizer",
    ],
  ])("%s", (_name, observed, step) => {
    expect(decide(observed).step).toBe(step);
  });
});

describe("a volume", () => {
  const decide = pureDecision(decideVolumeProtection);
  const finalizers = ["kubernetes.io/pv-protection"];
  const volume = (metadata: object, phase: "Bound" | "Released") => ({
    metadata: { name: "v", uid: "1", resourceVersion: "1", ...metadata },
    status: { phase },
  });
  const bound = volume({ ...deleted, finalizers }, "Bound");
  const released = volume({ ...deleted, finalizers }, "Released");
  it.each([
    ["without the finalizer gets it", { volume: volume({}, "Released") }, "addFinalizer"],
    ["with it is left alone", { volume: volume({ finalizers }, "Released") }, "settle"],
    ["being deleted without it goes", { volume: volume(deleted, "Released") }, "settle"],
    ["stays while it is bound", { volume: bound }, "settle"],
    ["is read again", { volume: released }, "readVolume"],
    ["that was bound meanwhile stays", { volume: released, live: { volume: bound } }, "settle"],
    ["that has gone meanwhile", { volume: released, live: { volume: undefined } }, "settle"],
    [
      "whose name has another volume now",
      { volume: released, live: { volume: volume({ uid: "2", finalizers }, "Released") } },
      "settle",
    ],
    ["that is not bound is let go", { volume: released, live: { volume: released } }, "removeFinalizer"],
  ])("%s", (_name, observed, step) => {
    expect(decide(observed).step).toBe(step);
  });
});
