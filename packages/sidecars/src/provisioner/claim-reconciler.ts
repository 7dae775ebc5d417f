/**
 * Brings one claim to its volume, or makes sure that none is left behind.
 *
 * Invariants
 *  - The intent (`longshore.dev/provisioning` on the claim) is stored before CreateVolume is called and taken off
 *    only once the PersistentVolume is stored or the volume is certainly gone. It is written with `update`, since
 *    the reference's role may not patch claims, and at most three writes a claim are made.
 *  - The volume's name is computed from the claim's uid, so that a repeated call finds the volume made before.
 *  - What this process remembers only spares work: a restart at any `await` reaches the same end.
 */
import {
  type EventRecorder,
  type Informer,
  involvedObject,
  isAlreadyExists,
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
  updateWithRetry,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import {
  betaStorageClassAnnotation,
  migratedToAnnotation,
  provisionedByAnnotation,
  provisionerFinalizer,
  provisioningFinalizer,
  selectedNodeAnnotation,
  volumeName,
} from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { decideClaimStep, type ObservedClaim } from "./claim-step.ts";
import { ProvisionError } from "./create-outcome.ts";
import {
  type AttemptContext,
  askForVolume,
  createVolume,
  isClaimOurs,
  removeUnwanted,
} from "./provision-volume.ts";
import { type PreparedVolume, prepareVolume, type RequestContext } from "./volume-request.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** What this process remembers of a claim between passes. */
export interface Attempt {
  readonly claim: Claim;
  /** The request, to be repeated as it is while its outcome is uncertain. */
  readonly prepared: PreparedVolume;
  readonly lastAnswer: "uncertain" | "final";
}

/** What the reconciler works with. */
export interface ClaimContext extends RequestContext, AttemptContext {
  readonly env: SidecarEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly claims: Pick<Informer<PersistentVolumeClaim>, "get">;
  readonly storageClasses: Pick<Informer<StorageClass>, "get">;
  readonly nodeByName: (name: string) => Node | undefined;
  /** By the key of the claim. */
  readonly attempts: Map<string, Attempt>;
  /** A request that can never succeed is tried again after this time, in milliseconds. */
  readonly infeasibleRetryMs: number;
  /** New volumes get {@link provisionerFinalizer}. */
  readonly protectVolumes: boolean;
}

/** One pass over the claim of this key. Failures are told in an event and thrown, to be retried. */
export async function reconcileClaim(
  context: ClaimContext,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = context.claims.get(key);
  const attempt = context.attempts.get(key);
  if (attempt !== undefined && attempt.claim.metadata.uid !== claim?.metadata.uid) {
    // The claim vanished in spite of the intent on it: somebody took it off by force.
    if (attempt.lastAnswer === "uncertain")
      await removeLeftover(context, attempt.claim, attempt.prepared, signal);
    context.attempts.delete(key);
  }
  if (claim === undefined) return settled;
  try {
    return await step(context, key, claim, signal);
  } catch (error) {
    if (signal.aborted || isConflict(error)) throw error;
    return failed(context, claim, error, signal);
  }
}

async function step(
  context: ClaimContext,
  key: string,
  claim: Claim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const storageClass = context.storageClasses.get(classNameOf(claim));
  const decision = decideClaimStep(await observe(context, key, claim, storageClass, signal));
  switch (decision.kind) {
    case "none":
      return settled;
    case "fail":
      throw new Error(decision.message);
    case "release":
      return release(context, key, claim, signal);
    case "reschedule":
      return reschedule(context, claim, signal);
    case "abandon": {
      const prepared =
        context.attempts.get(key)?.prepared ?? (await prepareAnyhow(context, claim, storageClass, signal));
      await removeLeftover(context, claim, prepared, signal);
      context.attempts.delete(key);
      return decision.afterwards === "release"
        ? release(context, key, claim, signal)
        : reschedule(context, claim, signal);
    }
    case "provision":
      if (storageClass === undefined) return settled;
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
  const attempt = context.attempts.get(key);
  const intended = (claim.metadata.finalizers ?? []).includes(provisioningFinalizer);
  const ours = isClaimOurs(context.driver, claim) && isKnownClass(context, storageClass);
  const deleting = isDeleting(claim);
  const bound = (claim.spec?.volumeName ?? "") !== "";
  const mayAct = intended || (ours && !deleting && !bound);
  const selectedNode = claim.metadata.annotations?.[selectedNodeAnnotation] || undefined;
  return {
    ours,
    deleting,
    bound,
    intended,
    // Asked of the server itself: a cache that lags would make the volume twice.
    pvStored: mayAct && (await isVolumeStored(context, claim, signal)),
    classFound: storageClass !== undefined,
    delayed: storageClass?.volumeBindingMode === "WaitForFirstConsumer",
    selectedNode,
    nodeFound: selectedNode !== undefined && context.nodeByName(selectedNode) !== undefined,
    lastAnswer: attempt?.lastAnswer ?? "unknown",
  };
}

/** A class of another provisioner is nobody's mistake to mend here; a missing one may come. */
function isKnownClass({ driver }: ClaimContext, storageClass: StorageClass | undefined): boolean {
  if (storageClass === undefined) return true;
  return storageClass.provisioner === driver.name || storageClass.provisioner === driver.inTreeName;
}

async function isVolumeStored(context: ClaimContext, claim: Claim, signal: AbortSignal): Promise<boolean> {
  const name = pvNameOf(context, claim);
  return (await context.env.kube.get(resources.persistentVolumes, { name }, { signal })) !== undefined;
}

function pvNameOf({ settings }: ClaimContext, claim: Claim): string {
  return volumeName(settings.volumeNamePrefix, claim.metadata.uid, settings.volumeNameUuidLength);
}

function classNameOf(claim: Claim): string {
  return claim.metadata.annotations?.[betaStorageClassAnnotation] ?? claim.spec?.storageClassName ?? "";
}

async function provision(
  context: ClaimContext,
  key: string,
  cached: Claim,
  storageClass: StorageClass,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { events, attempts } = context;
  const selectedNode = cached.metadata.annotations?.[selectedNodeAnnotation] || undefined;
  const before = attempts.get(key);
  const prepared =
    before?.lastAnswer === "uncertain"
      ? before.prepared
      : await prepareVolume(context, cached, storageClass, selectedNode, signal).catch(
          async (error: unknown) => {
            // Before the node is given up, what a forgotten attempt may have made for it must go.
            const forgotten =
              before === undefined && (cached.metadata.finalizers ?? []).includes(provisioningFinalizer);
            if (forgotten && error instanceof ProvisionError && error.state === "Reschedule") {
              await removeLeftover(
                context,
                cached,
                await prepareAnyhow(context, cached, storageClass, signal),
                signal,
              );
            }
            throw error;
          },
        );
  const claim = await storeIntent(context, cached, signal);
  const subject = involvedObject(resources.persistentVolumeClaims, claim);
  if (before === undefined) {
    const message = `External provisioner is provisioning volume for claim "${key}"`;
    events.event(subject, "Normal", "Provisioning", message);
  }
  attempts.set(key, { claim, prepared, lastAnswer: "uncertain" });
  try {
    const { pv, volumeId } = await createVolume(context, prepared, claim, signal);
    if (!(await isStillWanted(context, claim, signal))) {
      await removeUnwanted(context, prepared, volumeId, "the claim was deleted meanwhile", signal);
    } else {
      await storeVolume(context, completed(context, pv, claim, storageClass, prepared), signal);
      events.event(
        subject,
        "Normal",
        "ProvisioningSucceeded",
        `Successfully provisioned volume ${prepared.pvName}`,
      );
    }
  } catch (error) {
    if (error instanceof ProvisionError && (error.state === "Finished" || error.state === "Reschedule")) {
      attempts.set(key, { claim, prepared, lastAnswer: isInTheWay(error) ? "uncertain" : "final" });
    }
    throw error;
  }
  return release(context, key, claim, signal);
}

/** Under this volume's name there is another volume, perhaps our own made with other parameters: not "gone". */
function isInTheWay(error: ProvisionError): boolean {
  return codeOf(error) === "ALREADY_EXISTS";
}

/** Writes the intent unless it is there. A stale claim loses, and is looked at again. */
async function storeIntent(context: ClaimContext, claim: Claim, signal: AbortSignal): Promise<Claim> {
  const finalizers = claim.metadata.finalizers ?? [];
  if (finalizers.includes(provisioningFinalizer) || context.likeReference === true) return claim;
  const metadata = { ...claim.metadata, finalizers: [...finalizers, provisioningFinalizer] };
  return context.env.kube.update(resources.persistentVolumeClaims, { ...claim, metadata }, { signal });
}

async function release(
  context: ClaimContext,
  key: string,
  claim: Claim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  await changeClaim(context, claim, signal, (metadata) => {
    const finalizers = metadata.finalizers ?? [];
    if (!finalizers.includes(provisioningFinalizer)) return undefined;
    return { ...metadata, finalizers: finalizers.filter((f) => f !== provisioningFinalizer) };
  });
  context.attempts.delete(key);
  return settled;
}

/** Takes the chosen node off; the intent stays, for the next node will be tried for the same volume. */
async function reschedule(
  context: ClaimContext,
  claim: Claim,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  await changeClaim(context, claim, signal, (metadata) => {
    if (metadata.annotations?.[selectedNodeAnnotation] === undefined) return undefined;
    const { [selectedNodeAnnotation]: _, ...annotations } = metadata.annotations;
    return { ...metadata, annotations };
  });
  return settled;
}

async function changeClaim(
  { env }: ClaimContext,
  claim: Claim,
  signal: AbortSignal,
  change: (metadata: Claim["metadata"]) => Claim["metadata"] | undefined,
): Promise<void> {
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? "" };
  await updateWithRetry(
    env.kube,
    resources.persistentVolumeClaims,
    ref,
    (current) => {
      if (current.metadata.uid !== claim.metadata.uid) return undefined;
      const metadata = change(current.metadata);
      return metadata === undefined ? undefined : { ...current, metadata };
    },
    { signal },
  );
}

async function isStillWanted({ env }: ClaimContext, claim: Claim, signal: AbortSignal): Promise<boolean> {
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? "" };
  const now = await env.kube.get(resources.persistentVolumeClaims, ref, { signal });
  return now !== undefined && now.metadata.uid === claim.metadata.uid && !isDeleting(now);
}

/** The volume with what ties it to its claim. */
function completed(
  { driver, protectVolumes }: ClaimContext,
  pv: PersistentVolume,
  claim: Claim,
  storageClass: StorageClass,
  prepared: PreparedVolume,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const isProtected = protectVolumes && pv.spec?.persistentVolumeReclaimPolicy !== "Retain";
  return {
    ...pv,
    metadata: {
      ...pv.metadata,
      annotations: {
        ...pv.metadata?.annotations,
        [provisionedByAnnotation]: storageClass.provisioner,
        // Else the volume would look abandoned by its driver until the persistent-volume controller has seen it.
        ...(prepared.migrated ? { [migratedToAnnotation]: driver.name } : {}),
      },
      ...(isProtected ? { finalizers: [provisionerFinalizer] } : {}),
    },
    spec: {
      ...pv.spec,
      storageClassName: storageClass.metadata?.name ?? "",
      claimRef: {
        kind: "PersistentVolumeClaim",
        apiVersion: "v1",
        name,
        namespace: namespace ?? "",
        uid,
        resourceVersion,
      },
    },
  };
}

async function storeVolume({ env }: ClaimContext, pv: PersistentVolume, signal: AbortSignal): Promise<void> {
  try {
    await env.kube.create(resources.persistentVolumes, pv, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Finds the volume that may have been made, by making it again under its name, and deletes it. */
async function removeLeftover(
  context: ClaimContext,
  claim: Claim,
  prepared: PreparedVolume,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { volumeId } = await askForVolume(context, prepared, signal);
    await removeUnwanted(context, prepared, volumeId, "the claim no longer wants its volume", signal);
  } catch (error) {
    const isGone = error instanceof ProvisionError && error.state !== "Background" && !isInTheWay(error);
    if (isGone) return; // A final answer: there is no volume of that name.
    if (!signal.aborted) {
      const subject = involvedObject(resources.persistentVolumeClaims, claim);
      context.events.event(subject, "Warning", "ProvisioningCleanupFailed", errorChain(error));
    }
    throw error;
  }
}

/** The request of a claim whose volume is only to be found again: wherever the driver likes, if need be. */
async function prepareAnyhow(
  context: ClaimContext,
  claim: Claim,
  storageClass: StorageClass | undefined,
  signal: AbortSignal,
): Promise<PreparedVolume> {
  if (storageClass === undefined) {
    throw new Error(
      "the claim's StorageClass is gone, so that its volume cannot be looked for: create the class again",
    );
  }
  const selectedNode = claim.metadata.annotations?.[selectedNodeAnnotation] || undefined;
  try {
    return await prepareVolume(context, claim, storageClass, selectedNode, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const anywhere = { ...context, settings: { ...context.settings, immediateTopology: false } };
    return prepareVolume(anywhere, claim, storageClass, undefined, signal);
  }
}

/** Tells of a failure; a claim that another node may serve is given back to the scheduler. */
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
  context.events.event(
    subject,
    "Warning",
    "ProvisioningFailed",
    `failed to provision volume: ${errorChain(error)}`,
  );
  if (error instanceof ProvisionError && error.state === "Reschedule") {
    if (claim.metadata.annotations?.[selectedNodeAnnotation] !== undefined)
      return reschedule(context, claim, signal);
  }
  if (codeOf(error) === "INVALID_ARGUMENT") return { requeueAfterMs: context.infeasibleRetryMs };
  throw error;
}

/** The gRPC code behind a failed attempt, if a driver gave one. */
function codeOf(error: unknown): unknown {
  return error instanceof ProvisionError
    ? (error.cause as { readonly code?: unknown } | undefined)?.code
    : undefined;
}
