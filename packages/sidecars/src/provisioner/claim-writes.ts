/**
 * What the provisioner writes to claims: it adds the intent, removes the chosen node, and removes the intent. Always
 * with `update` and the version that was read, since the reference's role may not patch claims.
 */
import {
  compareResourceVersions,
  hasFinalizer,
  type Informer,
  isConflict,
  isNotFound,
  keyOf,
  type PersistentVolumeClaim,
  resources,
  type Stored,
  updateWithRetry,
  withFinalizer,
  withoutFinalizer,
} from "@longshore/kube";
import { provisioningFinalizer, selectedNodeAnnotation } from "@longshore/storage";
import type { SidecarEnv } from "../common/sidecar-env.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** The intent could not be removed. All work on the volume is done. */
export class IntentError extends Error {
  override readonly name = "IntentError";
}

/** What the writes need. */
export interface ClaimWriteContext {
  readonly env: SidecarEnv;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
}

/** Whether the intent to make a volume is on the claim. */
export function isIntended(claim: PersistentVolumeClaim): boolean {
  return hasFinalizer(claim, provisioningFinalizer);
}

/** The node that the scheduler chose, if it has. */
export function selectedNodeOf(claim: PersistentVolumeClaim): string | undefined {
  return claim.metadata?.annotations?.[selectedNodeAnnotation] || undefined;
}

/** Writes the intent unless it is there. A stale claim loses with a conflict, and is looked at again. */
export async function storeIntent(
  { env }: ClaimWriteContext,
  claim: Claim,
  signal: AbortSignal,
): Promise<Claim> {
  if (isIntended(claim)) return claim;
  const intended = withFinalizer(claim, provisioningFinalizer);
  return env.kube.update(resources.persistentVolumeClaims, intended, { signal });
}

/** Takes the intent off: the volume is stored, or certainly not there. @throws IntentError */
export async function removeIntent(
  context: ClaimWriteContext,
  claim: Claim,
  signal: AbortSignal,
): Promise<void> {
  try {
    await changeClaim(context, claim, signal, (current) =>
      isIntended(current) ? withoutFinalizer(current, provisioningFinalizer) : undefined,
    );
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new IntentError(`the finalizer ${provisioningFinalizer} cannot be taken off the claim yet`, {
      cause,
    });
  }
}

/** Removes the chosen node, so that the scheduler chooses again; the intent stays for the next attempt. */
export function removeSelectedNode(
  context: ClaimWriteContext,
  claim: Claim,
  signal: AbortSignal,
): Promise<void> {
  const refused = selectedNodeOf(claim);
  return changeClaim(context, claim, signal, (current) => {
    // The scheduler has chosen another node meanwhile, which was not tried.
    const { [selectedNodeAnnotation]: chosen, ...annotations } = current.metadata.annotations ?? {};
    if (chosen === undefined || chosen !== refused) return undefined;
    return { ...current, metadata: { ...current.metadata, annotations } };
  });
}

/**
 * Takes one request when no other client wrote meanwhile: tries the newest known version before it reads from the
 * server.
 */
async function changeClaim(
  { env, claims }: ClaimWriteContext,
  claim: Claim,
  signal: AbortSignal,
  change: (current: Claim) => Claim | undefined,
): Promise<void> {
  const changed = change(newer(claim, claims.get(keyOf(claim))));
  if (changed === undefined) return;
  try {
    await env.kube.update(resources.persistentVolumeClaims, changed, { signal });
    return;
  } catch (error) {
    // It is gone with its finalizers and annotations: nothing is left to change.
    if (isNotFound(error)) return;
    if (!isConflict(error)) throw error;
  }
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? "" };
  await updateWithRetry(
    env.kube,
    resources.persistentVolumeClaims,
    ref,
    // A claim made under the same name since carries an intent and a node of its own.
    (current) => (current.metadata.uid === claim.metadata.uid ? change(current) : undefined),
    { signal },
  );
}

function newer(claim: Claim, cached: Claim | undefined): Claim {
  if (cached === undefined || cached.metadata.uid !== claim.metadata.uid) return claim;
  const order = compareResourceVersions(cached.metadata.resourceVersion, claim.metadata.resourceVersion);
  return order !== undefined && order > 0 ? cached : claim;
}
