/**
 * Keeps what a volume is copied from until it is copied (docs/behaviour/sidecars.md 2.3, point 8).
 *
 * Invariants
 *  - The finalizer is on the source before CreateVolume is asked for a copy of it.
 *  - A claim's finalizer is removed once the claim is being deleted and nothing is cloned from it any more; a
 *    snapshot's once no claim waits to be restored from it, at the latest by the sweep.
 *  - Who copies is read from the claims themselves, so that a restart needs nothing else.
 */
import {
  hasFinalizer,
  type Informer,
  isDeleting,
  isNotFound,
  KubeApiError,
  type KubeObject,
  keyOf,
  type PersistentVolumeClaim,
  type Resource,
  refOfKey,
  resources,
  type Stored,
  updateWithRetry,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import {
  cloningProtectionFinalizer,
  provisioningFinalizer,
  snapshotResources,
  snapshotSourceProtectionFinalizer,
} from "@longshore/storage";
import type { SidecarEnv } from "../../common/sidecar-env.ts";
import { ProvisionError } from "../create-outcome.ts";
import { cloneSourceKeyOf, type DataSource, snapshotSourceKeyOf } from "./data-source.ts";

/** What protection works with. The claims have the indexes {@link sourceIndexes}. */
export interface ProtectionContext {
  readonly env: SidecarEnv;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get" | "byIndex">;
}

/** Indexes of claims by what they are copied from. */
export const sourceIndexes = {
  byCloneSource: (claim: Stored<PersistentVolumeClaim>) => listOf(cloneSourceKeyOf(claim)),
  bySnapshotSource: (claim: Stored<PersistentVolumeClaim>) => listOf(snapshotSourceKeyOf(claim)),
} as const;

const listOf = (key: string | undefined) => (key === undefined ? [] : [key]);

/**
 * Puts the finalizer on the source, unless it is there.
 * @throws ProvisionError `NoChange` when the source is gone or going; what the client throws, a conflict among it
 */
export async function protectSource(
  context: ProtectionContext,
  source: DataSource,
  signal: AbortSignal,
): Promise<void> {
  if (source.kind === "clone") return protectClaim(context, source, signal);
  try {
    await changeFinalizers(context, snapshotResources.volumeSnapshots, source, true, signal);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    // Roles from before this finalizer only read snapshots; the snapshot controller has a protection of its own.
    context.env.logger.warn("a snapshot cannot be protected while it is restored: allow updates of it", {
      snapshot: `${source.namespace}/${source.name}`,
      error,
    });
  }
}

/** From the cache, so that a source that is protected already costs no request. */
async function protectClaim(
  { env, claims }: ProtectionContext,
  source: DataSource,
  signal: AbortSignal,
): Promise<void> {
  const claim = claims.get(`${source.namespace}/${source.name}`);
  if (claim === undefined || isDeleting(claim)) throw goneOrGoing(source);
  if (hasFinalizer(claim, cloningProtectionFinalizer)) return;
  const held = withFinalizer(claim, cloningProtectionFinalizer);
  await env.kube.update(resources.persistentVolumeClaims, held, { signal });
}

/** Adds or removes our finalizer, on the source as the server has it, if that is the one `isMeant` accepts. */
export async function changeFinalizers<T extends KubeObject>(
  { env }: ProtectionContext,
  resource: Resource<T>,
  { kind, name, namespace }: DataSource,
  on: boolean,
  signal: AbortSignal,
  isMeant: (current: Stored<T>) => boolean = () => true,
): Promise<void> {
  const finalizer = kind === "clone" ? cloningProtectionFinalizer : snapshotSourceProtectionFinalizer;
  const found = await updateWithRetry(
    env.kube,
    resource,
    { name, namespace },
    (current) => {
      if (hasFinalizer(current, finalizer) === on || !isMeant(current)) return undefined;
      if (on && isDeleting(current)) throw goneOrGoing({ kind, name, namespace });
      return on ? withFinalizer(current, finalizer) : withoutFinalizer(current, finalizer);
    },
    { signal },
  );
  if (on && found === undefined) throw goneOrGoing({ kind, name, namespace });
}

function goneOrGoing({ kind, name, namespace }: Omit<DataSource, "crossesNamespaces">): ProvisionError {
  return new ProvisionError("NoChange", `the ${kind} source ${namespace}/${name} is gone or being deleted`);
}

/** The clone source that this change of a claim may have set free, or the claim itself if it is one. */
export function cloneSourceToCheck(
  { claims }: Pick<ProtectionContext, "claims">,
  claim: Stored<PersistentVolumeClaim>,
): string | undefined {
  if (isProtectedAndDeleted(claim)) return keyOf(claim);
  const sourceKey = cloneSourceKeyOf(claim);
  if (sourceKey === undefined) return undefined;
  const source = claims.get(sourceKey);
  return source !== undefined && isProtectedAndDeleted(source) ? sourceKey : undefined;
}

/** Whether only the end of its clones keeps the claim. */
export function isProtectedAndDeleted(claim: Stored<PersistentVolumeClaim>): boolean {
  return isDeleting(claim) && hasFinalizer(claim, cloningProtectionFinalizer);
}

/** The snapshot that the claim was restored from, unless another claim still waits to be restored from it. */
export function sourceToFree(
  { claims }: Pick<ProtectionContext, "claims">,
  claim: Stored<PersistentVolumeClaim>,
): string | undefined {
  const key = snapshotSourceKeyOf(claim);
  if (key === undefined) return undefined;
  const isWaiting = (other: Stored<PersistentVolumeClaim>) =>
    other.metadata.uid !== claim.metadata.uid && isBeingCopied(other);
  return claims.byIndex("bySnapshotSource", key).some(isWaiting) ? undefined : key;
}

/** Takes our finalizer off the snapshot. Without the right to, or without the snapshot, nothing is to be done. */
export async function freeSnapshot(
  context: ProtectionContext,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = "" } = refOfKey(key);
  const source = { kind: "snapshot", name, namespace, crossesNamespaces: false } as const;
  try {
    await changeFinalizers(context, snapshotResources.volumeSnapshots, source, false, signal);
  } catch (error) {
    if (!isNotFound(error) && !isForbidden(error)) throw error;
  }
}

const SNAPSHOTS_A_PAGE = 500;

/** Takes our finalizer off every snapshot that no claim waits for: what crashes and deleted claims have left. */
export async function sweepSnapshots(context: ProtectionContext, signal: AbortSignal): Promise<void> {
  const { kube } = context.env;
  if ((await kube.servedVersion(snapshotResources.volumeSnapshots, { signal })) === undefined) return;
  let token: string | undefined;
  do {
    const page = await kube.list(snapshotResources.volumeSnapshots, {
      signal,
      metadataOnly: true,
      limit: SNAPSHOTS_A_PAGE,
      ...(token === undefined ? {} : { continue: token }),
    });
    for (const snapshot of page.items) {
      if (!hasFinalizer(snapshot, snapshotSourceProtectionFinalizer)) continue;
      const key = keyOf(snapshot);
      if (context.claims.byIndex("bySnapshotSource", key).some(isBeingCopied)) continue;
      await freeSnapshot(context, key, signal);
    }
    token = page.continue;
  } while (token !== undefined);
}

/** The claim has no volume yet, or its provisioner is not done with it. */
export function isBeingCopied(claim: PersistentVolumeClaim): boolean {
  if (hasFinalizer(claim, provisioningFinalizer)) return true;
  const { spec, status } = claim;
  return !spec?.volumeName && (status?.phase ?? "Pending") === "Pending";
}

function isForbidden(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === 403;
}
