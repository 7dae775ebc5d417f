/** What the operator does next for a workspace: a pure decision over what it observes. */
import { keyOf, type PersistentVolumeClaim, parseQuantity, type Stored } from "@longshore/kube";
import type { Workspace } from "./workspace.ts";

/** What the operator sees of one workspace. */
export interface ObservedWorkspace {
  readonly workspace: Stored<Workspace>;
  /** The claim of the same name, if there is one. */
  readonly claim: Stored<PersistentVolumeClaim> | undefined;
}

/** The next step for a workspace. */
export type WorkspaceStep =
  | { readonly step: "createClaim"; readonly claim: PersistentVolumeClaim }
  | { readonly step: "refuseForeignClaim"; readonly reason: string }
  | { readonly step: "growClaim"; readonly size: string }
  | { readonly step: "reportStatus"; readonly status: NonNullable<Workspace["status"]> }
  | { readonly step: "done" };

/** Decides the next step; the first rule that applies counts. */
export function decideWorkspaceStep({ workspace, claim }: ObservedWorkspace): WorkspaceStep {
  // The claim is deleted with its owner.
  if (workspace.metadata.deletionTimestamp !== undefined) return { step: "done" };
  if (claim === undefined) return { step: "createClaim", claim: claimOf(workspace) };
  if (claim.metadata.ownerReferences?.some(({ uid }) => uid === workspace.metadata.uid) !== true) {
    const reason = `claim ${keyOf(claim)} has another owner: delete it, or rename the workspace`;
    return { step: "refuseForeignClaim", reason };
  }
  if (isLarger(workspace.spec.size, claim)) return { step: "growClaim", size: workspace.spec.size };
  const status = statusOf(workspace, claim);
  return isSame(status, workspace.status) ? { step: "done" } : { step: "reportStatus", status };
}

function claimOf({ metadata, spec }: Stored<Workspace>): PersistentVolumeClaim {
  const { name, namespace = "default", uid } = metadata;
  const owner = { apiVersion: "example.longshore.dev/v1", kind: "Workspace", name, uid, controller: true };
  return {
    metadata: { name, namespace, ownerReferences: [owner] },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: spec.size } },
      ...(spec.storageClassName === undefined ? {} : { storageClassName: spec.storageClassName }),
    },
  };
}

function isLarger(size: string, claim: PersistentVolumeClaim): boolean {
  return parseQuantity(size).compare(parseQuantity(claim.spec?.resources?.requests?.storage ?? "0")) > 0;
}

function statusOf({ metadata }: Stored<Workspace>, claim: Stored<PersistentVolumeClaim>) {
  return {
    phase: claim.status?.phase === "Bound" ? "Ready" : "Pending",
    claimName: metadata.name,
    observedGeneration: metadata.generation ?? 1,
  } as const;
}

function isSame(a: NonNullable<Workspace["status"]>, b: Workspace["status"]): boolean {
  return (
    a.phase === b?.phase && a.claimName === b?.claimName && a.observedGeneration === b?.observedGeneration
  );
}
