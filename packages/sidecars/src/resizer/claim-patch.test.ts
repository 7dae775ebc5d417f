import type { PersistentVolumeClaim, PersistentVolumeClaimCondition, Stored } from "@longshore/kube";
import { nodeExpansionNotRequiredAnnotation } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { begunPatch, finishedPatch, nodePendingPatch, refusedPatch } from "./claim-patch.ts";

const now = "2026-01-02T03:04:05Z";
const earlier = "2026-01-01T00:00:00Z";
const is = (
  type: string,
  message?: string,
  lastTransitionTime = earlier,
): PersistentVolumeClaimCondition => ({
  type,
  status: "True",
  lastTransitionTime,
  ...(message === undefined ? {} : { message }),
});
const foreign = is("Foreign", "of another component");

function claimWith(
  status: PersistentVolumeClaim["status"],
  annotations: Record<string, string> = {},
): Stored<PersistentVolumeClaim> {
  return { metadata: { name: "data", uid: "u", resourceVersion: "7", annotations }, status: status ?? {} };
}

const typesOf = (patch: { readonly status: Readonly<Record<string, unknown>> } | undefined) =>
  ((patch?.status.conditions ?? []) as PersistentVolumeClaimCondition[]).map(({ type }) => type);

describe("what is stored", () => {
  it("names the version it was made from", () => {
    const claim = claimWith({ allocatedResources: { storage: "2Gi" } });
    const patches = [
      begunPatch(claim, "2Gi", now),
      nodePendingPatch(claim, now),
      finishedPatch(claim, "2Gi"),
      refusedPatch(claim, { infeasible: true, message: "no" }, now),
    ];
    for (const patch of patches) expect(patch?.metadata.resourceVersion).toBe("7");
  });

  it("leaves conditions of others alone, and times of conditions that say the same", () => {
    const claim = claimWith({ conditions: [foreign, is("Resizing"), is("ControllerResizeError", "old")] });
    expect(begunPatch(claim, "2Gi", now).status.conditions).toEqual([foreign, is("Resizing")]);
    expect(finishedPatch(claim, "2Gi").status.conditions).toEqual([foreign]);
  });

  it("drops errors once the volume has grown", () => {
    const conditions = [is("Resizing"), is("ControllerResizeError", "old")];
    const kept = claimWith({ conditions, allocatedResources: { storage: "2Gi" } });
    expect(typesOf(nodePendingPatch(kept, now))).toEqual(["Resizing", "FileSystemResizePending"]);
    expect(nodePendingPatch(kept, now).status.allocatedResourceStatuses).toEqual({
      storage: "NodeResizePending",
    });
    const classic = claimWith({ conditions });
    expect(typesOf(nodePendingPatch(classic, now))).toEqual(["FileSystemResizePending"]);
    expect(nodePendingPatch(classic, now).status).not.toHaveProperty("allocatedResourceStatuses");
  });

  it("leaves the states of other resources alone", () => {
    const status = {
      allocatedResources: { storage: "2Gi" },
      allocatedResourceStatuses: { storage: "ControllerResizeInProgress", "example.com/iops": "X" },
    };
    expect(finishedPatch(claimWith(status), "2Gi").status.allocatedResourceStatuses).toEqual({
      storage: null,
    });
    const alone = { ...status, allocatedResourceStatuses: { storage: "ControllerResizeInProgress" } };
    expect(finishedPatch(claimWith(alone), "2Gi").status.allocatedResourceStatuses).toBeNull();
  });

  it("says to kubelets whether there is something to do for them", () => {
    const keeps = { allocatedResources: { storage: "2Gi" } };
    expect(finishedPatch(claimWith(keeps), "2Gi").metadata.annotations).toEqual({
      [nodeExpansionNotRequiredAnnotation]: "true",
    });
    const finished = claimWith(keeps, { [nodeExpansionNotRequiredAnnotation]: "true" });
    expect(finishedPatch(finished, "2Gi").metadata).not.toHaveProperty("annotations");
    expect(nodePendingPatch(finished, now).metadata.annotations).toEqual({
      [nodeExpansionNotRequiredAnnotation]: null,
    });
    expect(finishedPatch(claimWith({}), "2Gi").metadata).not.toHaveProperty("annotations");
  });
});

describe("a refusal", () => {
  const keeps = { allocatedResources: { storage: "2Gi" } };
  const inProgress = { ...keeps, allocatedResourceStatuses: { storage: "ControllerResizeInProgress" } };

  it("is stored beside what is under way", () => {
    const patch = refusedPatch(
      claimWith({ ...inProgress, conditions: [is("Resizing")] }),
      { infeasible: false, message: "no" },
      now,
    );
    expect(typesOf(patch)).toEqual(["Resizing", "ControllerResizeError"]);
    expect(patch?.status).not.toHaveProperty("allocatedResourceStatuses");
  });

  it("for good is a state", () => {
    const patch = refusedPatch(claimWith(inProgress), { infeasible: true, message: "no" }, now);
    expect(patch?.status.allocatedResourceStatuses).toEqual({ storage: "ControllerResizeInfeasible" });
  });

  it("is not stored twice, nor where the server cannot keep it", () => {
    const conditions = [is("ControllerResizeError", "failed to expand pvc with no")];
    const said = claimWith({ ...inProgress, conditions });
    expect(refusedPatch(said, { infeasible: false, message: "no" }, now)).toBeUndefined();
    expect(refusedPatch(said, { infeasible: true, message: "no" }, now)).toBeDefined();
    expect(refusedPatch(said, { infeasible: false, message: "never" }, now)).toBeDefined();
    expect(refusedPatch(claimWith({}), { infeasible: false, message: "no" }, now)).toBeUndefined();
  });
});
