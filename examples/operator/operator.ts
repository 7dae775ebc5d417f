/**
 * The operator of workspaces: each gets a claim of its size, which goes with it, and says when that is bound.
 *
 * Invariants
 *  - Woken by a key: each pass looks at the caches, which show at least what the operator itself has written.
 *  - A pass may stop at any `await` and begin again; a second pass changes nothing more.
 */
import {
  isAlreadyExists,
  type KubeEnv,
  keyOf,
  type PersistentVolumeClaim,
  parseQuantity,
  type ReconcileResult,
  refOf,
  resources,
  type Stored,
  settled,
  sharedInformers,
  startWorkQueue,
  trackWrites,
} from "@longshore/kube";
import { type Component, stopAll } from "@longshore/runtime";
import { type Workspace, workspaces } from "./workspace.ts";

/** Starts the operator; it works in the background until it is stopped. */
export function startWorkspaceOperator(given: KubeEnv): Component {
  const informers = sharedInformers(given);
  const env = trackWrites(given, informers);
  const cache = informers.of(workspaces);
  const claims = informers.of(resources.persistentVolumeClaims);
  const queue = startWorkQueue(env, {
    name: "workspaces",
    workers: 4,
    reconcileTimeoutMs: 60_000,
    reconcile: async (key, signal) => {
      await informers.synced(signal);
      const workspace = cache.get(key);
      return workspace === undefined ? settled : reconcile(env, workspace, claims.get(key), signal);
    },
  });
  cache.onChange({
    added: (workspace, { initial }) => queue.add(keyOf(workspace), initial ? "background" : "fresh"),
    updated: (_, workspace) => queue.add(keyOf(workspace)),
    deleted: (workspace) => queue.forget(keyOf(workspace)),
  });
  // A claim has its workspace's name.
  const wake = (claim: Stored<PersistentVolumeClaim>) => queue.add(keyOf(claim));
  claims.onChange({ added: wake, updated: (_, claim) => wake(claim), deleted: wake });
  return { stop: () => stopAll([queue, informers]) };
}

async function reconcile(
  { kube }: KubeEnv,
  workspace: Stored<Workspace>,
  claim: Stored<PersistentVolumeClaim> | undefined,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  if (workspace.metadata.deletionTimestamp !== undefined) return settled; // The claim goes with its owner.
  if (claim === undefined) {
    await kube
      .create(resources.persistentVolumeClaims, claimOf(workspace), { signal })
      .catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      });
  } else if (claim.metadata.ownerReferences?.some(({ uid }) => uid === workspace.metadata.uid) !== true) {
    throw new Error(`claim ${keyOf(claim)} belongs to someone else: delete it, or rename the workspace`);
  } else if (isLarger(workspace.spec.size, claim)) {
    const body = { spec: { resources: { requests: { storage: workspace.spec.size } } } };
    await kube.patch(resources.persistentVolumeClaims, refOf(claim), { type: "merge", body }, { signal });
  }
  const status: Workspace["status"] = {
    phase: claim?.status?.phase === "Bound" ? "Ready" : "Pending",
    claimName: workspace.metadata.name,
    observedGeneration: workspace.metadata.generation ?? 1,
  };
  if (!isSame(status, workspace.status)) {
    await kube.updateStatus(workspaces, { ...workspace, status }, { signal });
  }
  return settled;
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

function isSame(a: Workspace["status"], b: Workspace["status"]): boolean {
  return (
    a?.phase === b?.phase && a?.claimName === b?.claimName && a?.observedGeneration === b?.observedGeneration
  );
}
