/**
 * Creates the volume of one claim, or makes sure that none is left behind.
 *
 * Invariants
 *  - The intent (`longshore.dev/provisioning` on the claim) is stored before CreateVolume is called and removed only
 *    once the PersistentVolume is stored or the volume is certainly gone. At most two writes to a claim are made.
 *  - The volume's name is computed from the claim's uid, so that a repeated call finds the volume made before.
 *  - What this process remembers only saves work: a restart at any `await` leads to the same end state.
 *  - What decides over a disk's deletion is read from the server at that moment, never from a cache.
 */
import {
  type EventRecorder,
  type Informer,
  involvedObject,
  isConflict,
  isDeleting,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type ReconcileResult,
  resources,
  type StorageClass,
  type Stored,
  settled,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { betaStorageClassAnnotation, deletionSecretNameAnnotation, volumeName } from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { isClaimOurs } from "./claim-owner.ts";
import { decideClaimStep, type ObservedClaim } from "./claim-step.ts";
import {
  giveNodeBack,
  IntentError,
  isIntended,
  removeIntent,
  selectedNodeOf,
  storeIntent,
} from "./claim-writes.ts";
import { type ContentionContext, contendFor } from "./contention.ts";
import { codeOf, ProvisionError, provesAbsence } from "./create-outcome.ts";
import { type LeftoverContext, prepareAnyhow, removeLeftover } from "./leftover.ts";
import { type OwnNode, shareOf } from "./node-deployment.ts";
import { createVolume, provisioningSecrets, removeUnwanted } from "./provision-volume.ts";
import type { ProvisionerMetrics } from "./provisioner-metrics.ts";
import { type ProtectionContext, protectSource, releaseSnapshot } from "./source-protection.ts";
import { type MadeVolume, type StoreContext, storeVolume } from "./store-volume.ts";
import { type PreparedVolume, prepareVolume } from "./volume-request.ts";
import { isOfDriver } from "./volume-step.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** What this process remembers of a claim between passes. */
export interface Attempt {
  readonly claim: Claim;
  /** The request, to be repeated as it is while its outcome is uncertain. */
  readonly prepared: PreparedVolume;
  readonly lastAnswer: "uncertain" | "final";
  /** The volume that the driver has made, while its object could not be stored yet. */
  readonly made?: MadeVolume;
}

/** What the reconciler works with. */
export interface ClaimContext
  extends LeftoverContext,
    ContentionContext,
    StoreContext,
    Omit<ProtectionContext, "claims"> {
  readonly env: SidecarEnv;
  /** The only node whose claims are served; undefined: all are. */
  readonly ownNode: OwnNode | undefined;
  readonly events: Pick<EventRecorder, "event">;
  readonly metrics: ProvisionerMetrics;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get" | "byIndex">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly storageClasses: Pick<Informer<StorageClass>, "get">;
  readonly nodeByName: (name: string) => Node | undefined;
  /** By the key of the claim. */
  readonly attempts: Map<string, Attempt>;
  /** A request that can never succeed is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
  /** Called with the class that gained or lost a volume, or ran out of capacity. */
  readonly onCapacityChanged: (storageClassName: string) => void;
}

/** One pass over the claim of this key. Failures are reported in an event and thrown, to be retried. */
export async function reconcileClaim(
  context: ClaimContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const cached = context.claims.get(key);
  const attempt = context.attempts.get(key);
  if (attempt !== undefined && attempt.claim.metadata.uid !== cached?.metadata.uid) {
    // The claim is gone although its intent was set: the finalizer was removed by force.
    if (attempt.lastAnswer === "uncertain")
      await removeLeftover(context, attempt.claim, attempt.prepared, signal);
    forget(context, key, attempt.claim);
  }
  if (cached === undefined) return settled;
  const claim = await firstSight(context, key, cached, signal);
  if (claim === undefined) return settled;
  try {
    return await step(context, key, claim, signal);
  } catch (error) {
    // The volume is stored or deleted: only a write is still to be made.
    if (signal.aborted || isConflict(error) || error instanceof IntentError) throw error;
    return failed(context, claim, error, signal);
  }
}

/**
 * A claim whose intent an earlier process stored is read from the server, since no write with its version will show
 * whether the cache was stale.
 */
async function firstSight(
  context: ClaimContext,
  key: string,
  cached: Claim,
  signal: AbortSignal,
): Promise<Claim | undefined> {
  const isRemembered = context.attempts.has(key);
  if (!isIntended(cached) || isRemembered || !isClaimOurs(context.driver, cached)) return cached;
  const { name, namespace = "" } = cached.metadata;
  return context.env.kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
}

async function step(
  context: ClaimContext,
  key: string,
  claim: Claim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const storageClass = context.storageClasses.get(classNameOf(claim));
  const nodeExists = (name: string) => context.nodeByName(name) !== undefined;
  const share = shareOf(context.ownNode, claim, storageClass, nodeExists);
  if (share === "others") {
    const attempt = context.attempts.get(key);
    if (attempt?.lastAnswer === "uncertain") await removeLeftover(context, claim, attempt.prepared, signal);
    context.attempts.delete(key);
    context.contentions.delete(claim.metadata.uid);
    return settled;
  }
  if (share === "nobodys" && context.ownNode !== undefined && storageClass !== undefined) {
    const isOurs = isClaimOurs(context.driver, claim) && isKnownClass(context, storageClass);
    return isOurs ? contendFor(context, context.ownNode, claim, storageClass, signal) : settled;
  }
  const decision = decideClaimStep(await observe(context, key, claim, storageClass, signal));
  switch (decision.kind) {
    case "none":
      return settled;
    case "fail":
      throw new Error(decision.message);
    case "release":
      return release(context, key, claim, signal);
    case "reschedule":
      await giveNodeBack(context, claim, signal);
      return settled;
    case "abandon": {
      const prepared =
        context.attempts.get(key)?.prepared ?? (await prepareAnyhow(context, claim, storageClass, signal));
      await removeLeftover(context, claim, prepared, signal);
      settle(context, key, claim, prepared);
      if (decision.afterwards === "release") return release(context, key, claim, signal);
      await giveNodeBack(context, claim, signal);
      return settled;
    }
    case "provision":
      return provision(context, key, claim, storageClass, signal);
    default:
      return assertNever(decision);
  }
}

async function observe(
  context: ClaimContext,
  key: string,
  claim: Claim,
  storageClass: StorageClass | undefined,
  signal: AbortSignal,
): Promise<ObservedClaim> {
  const lastAnswer = context.attempts.get(key)?.lastAnswer ?? "unknown";
  const intended = isIntended(claim);
  const selectedNode = selectedNodeOf(claim);
  const name = volumeName(
    context.settings.volumeNamePrefix,
    claim.metadata.uid,
    context.settings.volumeNameUuidLength,
  );
  const ours = isClaimOurs(context.driver, claim) && isKnownClass(context, storageClass);
  let pv: PersistentVolume | undefined = context.volumes.get(name);
  // What this process wrote, its caches show; what one before it wrote, they may not show yet.
  if (pv === undefined && ours && intended && lastAnswer === "unknown")
    pv = await context.env.kube.get(resources.persistentVolumes, { name }, { signal });
  return {
    ours,
    deleting: isDeleting(claim),
    bound: (claim.spec?.volumeName ?? "") !== "",
    intended,
    pvStored: pv !== undefined,
    pvOfDriver: pv !== undefined && isOfDriver(context.driver, pv),
    pvForeign: pv !== undefined && pv.metadata?.annotations?.[deletionSecretNameAnnotation] === undefined,
    classFound: storageClass !== undefined,
    delayed: storageClass?.volumeBindingMode === "WaitForFirstConsumer",
    selectedNode,
    nodeFound: selectedNode !== undefined && context.nodeByName(selectedNode) !== undefined,
    lastAnswer,
  };
}

/** True also without the class, which may be created later. A claim with another provisioner's class is not ours. */
function isKnownClass({ driver }: ClaimContext, storageClass: StorageClass | undefined): boolean {
  if (storageClass === undefined) return true;
  return storageClass.provisioner === driver.name || storageClass.provisioner === driver.inTreeName;
}

function classNameOf(claim: PersistentVolumeClaim): string {
  return claim.metadata?.annotations?.[betaStorageClassAnnotation] ?? claim.spec?.storageClassName ?? "";
}

async function provision(
  context: ClaimContext,
  key: string,
  cached: Claim,
  storageClass: StorageClass | undefined,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const startedMs = context.env.clock.monotonicMs();
  try {
    await attemptProvision(context, key, cached, storageClass, signal);
    context.metrics.provisioned(cached, context.env.clock.monotonicMs() - startedMs);
  } catch (error) {
    const isNoFailure = isConflict(error) || (error instanceof ProvisionError && error.ignored);
    if (!signal.aborted && !isNoFailure) context.metrics.provisionFailed(cached);
    throw error;
  }
  return release(context, key, context.attempts.get(key)?.claim ?? cached, signal);
}

async function attemptProvision(
  context: ClaimContext,
  key: string,
  cached: Claim,
  storageClass: StorageClass | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { events, attempts } = context;
  const before = attempts.get(key);
  const mayExist = before === undefined ? isIntended(cached) : before.lastAnswer === "uncertain";
  const prepared =
    before !== undefined && mayExist
      ? before.prepared
      : await prepare(context, cached, storageClass, mayExist, signal);
  const secrets = await provisioningSecrets(context, prepared, signal);
  // Protected before the intent was stored, and as long as it is.
  if (prepared.dataSource !== undefined && !isIntended(cached))
    await protectSource(context, prepared.dataSource, signal);
  const claim = context.likeReference === true ? cached : await storeIntent(context, cached, signal);
  const subject = involvedObject(resources.persistentVolumeClaims, claim);
  if (before === undefined) {
    const message = `External provisioner is provisioning volume for claim "${key}"`;
    events.event(subject, "Normal", "Provisioning", message);
  }
  attempts.set(key, { ...before, claim, prepared, lastAnswer: "uncertain" });
  let made = before?.made;
  try {
    made ??= await createVolume(context, prepared, secrets, claim, signal);
  } catch (error) {
    if (provesAbsence(error, mayExist)) settle(context, key, claim, prepared);
    throw error;
  } finally {
    context.onCapacityChanged(prepared.storageClass.metadata?.name ?? "");
  }
  attempts.set(key, { claim, prepared, lastAnswer: "uncertain", made });
  if (!isStillWanted(context, key, claim)) {
    await removeUnwanted(context, prepared, made.volumeId, "the claim was deleted meanwhile", signal);
  } else if (await storeVolume(context, claim, prepared, made, signal)) {
    const message = `Successfully provisioned volume ${prepared.pvName}`;
    events.event(subject, "Normal", "ProvisioningSucceeded", message);
  }
  settle(context, key, claim, prepared);
}

/**
 * Whatever CreateVolume did is accounted for: stored, deleted, or certainly not there. After this, a claim that
 * vanishes needs no search for its volume; the search would create the volume again.
 */
function settle({ attempts, topologies }: ClaimContext, key: string, claim: Claim, prepared: PreparedVolume) {
  attempts.set(key, { claim, prepared, lastAnswer: "final" });
  topologies.delete(claim.metadata.uid);
}

async function prepare(
  context: ClaimContext,
  claim: Claim,
  storageClass: StorageClass | undefined,
  mayExist: boolean,
  signal: AbortSignal,
): Promise<PreparedVolume> {
  if (storageClass === undefined) throw new Error("the claim's StorageClass was deleted: create it again");
  try {
    return await prepareVolume(context, claim, storageClass, selectedNodeOf(claim), signal);
  } catch (error) {
    // Before the node is given up, what a forgotten attempt may have made for it must go.
    if (mayExist && error instanceof ProvisionError && error.state === "Reschedule") {
      await removeLeftover(context, claim, await prepareAnyhow(context, claim, storageClass, signal), signal);
    }
    throw error;
  }
}

/** According to the cache. If the claim is deleted a moment later, its volume is released and reclaimed. */
function isStillWanted({ claims }: ClaimContext, key: string, claim: Claim): boolean {
  const now = claims.get(key);
  return now !== undefined && now.metadata.uid === claim.metadata.uid && !isDeleting(now);
}

/** Everything is done, for the driver and for the source that the volume was copied from. */
async function release(
  context: ClaimContext,
  key: string,
  claim: Claim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  await removeIntent(context, claim, signal);
  forget(context, key, claim);
  await releaseSnapshot(context, claim, signal).catch((error: unknown) => {
    if (!signal.aborted)
      context.env.logger.debug("a snapshot stays protected until the sweep", { key, error });
  });
  return settled;
}

function forget({ attempts, topologies, contentions }: ClaimContext, key: string, claim: Claim): void {
  attempts.delete(key);
  topologies.delete(claim.metadata.uid);
  contentions.delete(claim.metadata.uid);
}

/** Reports a failure; a claim that another node may serve returns to the scheduler. */
async function failed(
  context: ClaimContext,
  claim: Claim,
  error: unknown,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const subject = involvedObject(resources.persistentVolumeClaims, claim);
  if (error instanceof ProvisionError && error.ignored) {
    context.events.event(subject, "Normal", "Provisioning", error.message);
    return settled;
  }
  const message = `failed to provision volume with StorageClass "${classNameOf(claim)}": ${errorChain(error)}`;
  context.events.event(subject, "Warning", "ProvisioningFailed", message);
  if (
    error instanceof ProvisionError &&
    error.state === "Reschedule" &&
    selectedNodeOf(claim) !== undefined
  ) {
    await giveNodeBack(context, claim, signal);
    return settled;
  }
  if (codeOf(error) === "INVALID_ARGUMENT") return { requeueAfterMs: context.infeasibleRetryMs };
  throw error;
}
