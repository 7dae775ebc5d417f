import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import type { PlannedVolume, VolumeObservation } from "./conversion-types.ts";
import { decideVolumeStep, type VolumeIntent } from "./decide-volume-step.ts";

type Volume = Stored<PersistentVolume>;
type Claim = Stored<PersistentVolumeClaim>;

const claimRef = { namespace: "shop", name: "data" };

function volume(name: string, uid: string, spec: object, phase: string, metadata: object = {}): Volume {
  return {
    metadata: { name, uid, resourceVersion: "1", ...metadata },
    spec: { persistentVolumeReclaimPolicy: "Retain", ...spec },
    status: { phase },
  } as Volume;
}
const oldVolume = (fields: { policy?: string; claimUid?: string; phase?: string; metadata?: object } = {}) =>
  volume(
    "pv",
    "old",
    {
      awsElasticBlockStore: { volumeID: "vol-1" },
      persistentVolumeReclaimPolicy: fields.policy ?? "Retain",
      claimRef: { ...claimRef, uid: fields.claimUid ?? "c1" },
    },
    fields.phase ?? "Bound",
    fields.metadata,
  );
const newVolume = (fields: { policy?: string; claimUid?: string; phase?: string; handle?: string } = {}) =>
  volume(
    "pv-csi",
    "new",
    {
      csi: { driver: "ebs.csi.aws.com", volumeHandle: fields.handle ?? "vol-1" },
      persistentVolumeReclaimPolicy: fields.policy ?? "Retain",
      claimRef: { ...claimRef, ...(fields.claimUid === undefined ? {} : { uid: fields.claimUid }) },
    },
    fields.phase ?? "Available",
  );
const claim = (uid: string, volumeName: string | undefined, phase = "Bound", metadata: object = {}): Claim =>
  ({
    metadata: { ...claimRef, uid, resourceVersion: "1", ...metadata },
    spec: { ...(volumeName === undefined ? {} : { volumeName }) },
    status: { phase },
  }) as Claim;

const sized = <T extends Volume | Claim>(object: T, size: string, status: object = {}): T => {
  const spec =
    "claimRef" in (object.spec ?? {})
      ? { capacity: { storage: size } }
      : { resources: { requests: { storage: size } } };
  return { ...object, spec: { ...object.spec, ...spec }, status: { ...object.status, ...status } };
};

const planned = {
  claimAfter: claim("", "pv-csi"),
  volume: "pv",
  volumeUid: "old",
  claim: { ...claimRef, uid: "c1" },
  toAfter: newVolume(),
  policy: "Delete",
} as unknown as PlannedVolume;
const plannedSize = (size: string): PlannedVolume => ({
  ...planned,
  claimAfter: sized(claim("", "pv-csi"), size),
  toAfter: sized(newVolume(), size),
});
const intent: VolumeIntent = { planned, claimDeletionBegun: false, volumeDeletionBegun: false };
const nothing: VolumeObservation = {
  from: undefined,
  to: undefined,
  claim: undefined,
  users: [],
  workloadsUp: [],
  workloadsDown: [],
};
const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const web = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w", replicas: 3 } as const;

function decided(seen: Partial<VolumeObservation>, known: Partial<VolumeIntent> = {}): string {
  const decision = decideVolumeStep({ ...intent, ...known }, { ...nothing, ...seen });
  return decision.step === "blocked" ? `blocked: ${decision.refusal.code}` : decision.step;
}

type Row = readonly [string, string, Partial<VolumeObservation>, Partial<VolumeIntent>?];

describe("decideVolumeStep", () => {
  const c1 = claim("c1", "pv");
  const c2 = claim("c2", "pv-csi");
  const resizing = sized(c1, "2Gi", { conditions: [{ type: "FileSystemResizePending", status: "True" }] });
  const rows: readonly Row[] = [
    ["retain old volume", "the policy is Delete", { from: oldVolume({ policy: "Delete" }), claim: c1 }],
    [
      "retain old volume",
      "its claim is gone and the policy is Delete",
      { from: oldVolume({ policy: "Delete", phase: "Released" }) },
    ],
    [
      "retain old volume",
      "the new one is bound, and the old one would take the disk along",
      { from: oldVolume({ policy: "Delete" }), to: newVolume({ claimUid: "c2", phase: "Bound" }), claim: c2 },
    ],
    [
      "scale down",
      "a workload that may be scaled uses it",
      { from: oldVolume(), claim: c1, users: ["Pod"], workloadsUp: [web] },
    ],
    ["wait for quiet", "something holds it", { from: oldVolume(), claim: c1, users: ["Pod"] }],
    ["create new volume", "nothing is prepared", { from: oldVolume(), claim: c1 }],
    [
      "await new volume",
      "the controller has not seen it",
      { from: oldVolume(), to: newVolume({ phase: "Pending" }), claim: c1 },
    ],
    [
      "free new volume",
      "it remembers a claim that is gone",
      { from: oldVolume(), to: newVolume({ claimUid: "c0", phase: "Released" }), claim: c1 },
    ],
    [
      "await growth",
      "the claim asks for more than the volume has",
      { from: sized(oldVolume(), "1Gi"), to: newVolume(), claim: sized(c1, "2Gi") },
    ],
    [
      "await growth",
      "the file system is still to grow",
      { from: sized(oldVolume(), "2Gi"), claim: resizing },
    ],
    [
      "scale up to grow",
      "the file system is to grow, which takes a pod",
      { from: sized(oldVolume(), "2Gi"), claim: resizing, workloadsDown: [web] },
    ],
    [
      "await growth",
      "a pod is there, and the file system is to grow",
      { from: sized(oldVolume(), "2Gi"), claim: resizing, users: ["Pod"], workloadsUp: [web] },
    ],
    [
      "await growth",
      "the pod that the file system waits for is still to come",
      { from: sized(oldVolume(), "2Gi"), claim: resizing },
    ],
    [
      "wait for quiet",
      "the file system is to grow, and the last pod ends",
      {
        from: sized(oldVolume(), "2Gi"),
        claim: resizing,
        users: ["Pod"],
        workloadsDown: [web],
      },
    ],
    [
      "follow growth",
      "the claim has grown since the plan",
      { from: sized(oldVolume(), "2Gi"), claim: sized(c1, "2Gi") },
      { planned: plannedSize("1Gi") },
    ],
    [
      "follow growth",
      "what was made by the plan is smaller than the disk",
      { from: sized(oldVolume(), "2Gi"), to: sized(newVolume(), "1Gi"), claim: sized(c1, "2Gi") },
      { planned: plannedSize("2Gi") },
    ],
    [
      "delete claim",
      "the plan has the size",
      { from: sized(oldVolume(), "2Gi"), to: sized(newVolume(), "2Gi"), claim: sized(c1, "2Gi") },
      { planned: plannedSize("2048Mi") },
    ],
    ["delete claim", "all is prepared", { from: oldVolume(), to: newVolume(), claim: c1 }],
    [
      "await claim gone",
      "it has asked for that",
      { from: oldVolume(), to: newVolume(), claim: claim("c1", "pv", "Bound", deleting) },
      { claimDeletionBegun: true },
    ],
    [
      "blocked: claim-deleting",
      "another has asked for that",
      { from: oldVolume(), to: newVolume(), claim: claim("c1", "pv", "Bound", deleting) },
    ],
    ["create claim", "it is gone", { from: oldVolume({ phase: "Released" }), to: newVolume() }],
    ["create new volume", "claim and new volume are gone", { from: oldVolume({ phase: "Released" }) }],
    [
      "await bound",
      "another has created it again without a volume",
      { from: oldVolume({ phase: "Released" }), to: newVolume(), claim: claim("c3", undefined, "Pending") },
    ],
    [
      "await bound",
      "one side is bound",
      { from: oldVolume({ phase: "Released" }), to: newVolume({ claimUid: "c2" }), claim: c2 },
    ],
    [
      "delete old volume",
      "the new one is bound on both sides",
      {
        from: oldVolume({ phase: "Released" }),
        to: newVolume({ claimUid: "c2", phase: "Bound" }),
        claim: c2,
      },
    ],
    [
      "await old volume gone",
      "a finalizer keeps it",
      {
        from: oldVolume({ phase: "Released", metadata: deleting }),
        to: newVolume({ claimUid: "c2", phase: "Bound" }),
        claim: c2,
      },
    ],
    [
      "restore policy",
      "one volume is left",
      { to: newVolume({ claimUid: "c2", phase: "Bound" }), claim: c2 },
    ],
    [
      "blocked: claim-deleting",
      "the policy must not come back to a claim that goes",
      { to: newVolume({ claimUid: "c2", phase: "Bound" }), claim: claim("c2", "pv-csi", "Bound", deleting) },
    ],
    [
      "scale up",
      "the policy is back",
      {
        to: newVolume({ claimUid: "c2", phase: "Bound", policy: "Delete" }),
        claim: c2,
        workloadsDown: [web],
      },
    ],
    [
      "done",
      "nothing is left",
      { to: newVolume({ claimUid: "c2", phase: "Bound", policy: "Delete" }), claim: c2 },
    ],
    [
      "blocked: changed-by-others",
      "the claim is bound to a third volume",
      { from: oldVolume({ phase: "Released" }), to: newVolume(), claim: claim("c3", "pv-other") },
    ],
    ["blocked: changed-by-others", "its volume is gone", { claim: c1 }],
    [
      "blocked: name-taken",
      "the new name is another disk's",
      { from: oldVolume(), to: newVolume({ handle: "vol-2" }), claim: c1 },
    ],
    ["blocked: volume-deleting", "the old one goes", { from: oldVolume({ metadata: deleting }), claim: c1 }],
  ];
  it.each(rows.map((row) => ({ row, name: `${row[0]}: ${row[1]}` })))(
    "$name",
    ({ row: [expected, , seen, known] }) => {
      expect(decided(seen, known)).toBe(expected);
    },
  );

  it("never deletes anything while a policy is not Retain", () => {
    const policies = ["Delete", "Retain", "Recycle"];
    const claims = [
      undefined,
      c1,
      c2,
      claim("c3", undefined, "Pending"),
      claim("c1", "pv", "Bound", deleting),
    ];
    const news = [
      undefined,
      ...policies.flatMap((policy) => [
        newVolume({ policy }),
        newVolume({ policy, claimUid: "c2", phase: "Bound" }),
        newVolume({ policy, claimUid: "c0", phase: "Released" }),
      ]),
    ];
    let deletions = 0;
    for (const policy of policies) {
      for (const phase of ["Bound", "Released"]) {
        for (const to of news) {
          for (const each of claims) {
            const from = oldVolume({ policy, phase });
            const step = decided({ from, to, claim: each }, { claimDeletionBegun: true });
            if (step !== "delete claim" && step !== "delete old volume") continue;
            deletions++;
            expect(policy).toBe("Retain");
            if (step === "delete claim") expect(to?.spec?.persistentVolumeReclaimPolicy).toBe("Retain");
          }
        }
      }
    }
    expect(deletions).toBeGreaterThan(2);
  });
});
