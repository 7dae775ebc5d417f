/**
 * The actions that take a claim with immediate binding for this provisioner's node (docs/behaviour/sidecars.md 2.10).
 *
 * Invariant: the claim is taken with the version that was seen, so that of several provisioners one wins; the others
 * find its node on the claim.
 */
import { isConflict, type ReconcileResult, resources, settled } from "@longshore/kube";
import { selectedNodeAnnotation } from "@longshore/storage";
import { contentionDelayMs } from "../node-deployment.ts";
import { prepareVolume } from "../requests/volume-request.ts";
import { type ClaimActions, claimOf } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ContentionStep, ObservedClaim, ObservedContention } from "./claim-step.ts";

/** The actions of {@link ContentionStep}. */
export function contentionActions(context: ClaimContext): Pick<ClaimActions, ContentionStep["step"]> {
  const { contentions } = context.memory;
  return {
    leaveContention(_, observed) {
      contentions.delete(claimOf(observed).metadata.uid);
      return settled;
    },
    pauseContention: ({ races }, observed) => pause(context, observed, races),
    awaitTurn: ({ ms }) => ({ requeueAfterMs: ms }),
    async askForRoom(_, observed, { signal }) {
      return contending(observed, { hasRoom: await hasRoom(context, observed, signal) });
    },
    takeClaim: (_, observed, { signal }) => takeClaim(context, observed, signal),
  };
}

function contending(observed: ObservedClaim, more: Partial<ObservedContention>) {
  const { contention } = observed;
  return {
    observed: contention === undefined ? observed : { ...observed, contention: { ...contention, ...more } },
  };
}

function pause(context: ClaimContext, observed: ObservedClaim, races: number): ReconcileResult {
  const { ownNode, env, memory } = context;
  if (ownNode === undefined) return settled;
  const delayMs = contentionDelayMs(ownNode, races, env.random);
  const dueMs = env.clock.monotonicMs() + delayMs;
  memory.contentions.set(claimOf(observed).metadata.uid, { races, dueMs });
  return { requeueAfterMs: delayMs };
}

async function takeClaim(context: ClaimContext, observed: ObservedClaim, signal: AbortSignal) {
  const claim = claimOf(observed);
  const annotations = {
    ...claim.metadata.annotations,
    [selectedNodeAnnotation]: context.ownNode?.name ?? "",
  };
  const taken = { ...claim, metadata: { ...claim.metadata, annotations } };
  try {
    await context.env.kube.update(resources.persistentVolumeClaims, taken, { signal });
  } catch (error) {
    if (!isConflict(error)) throw error;
    return contending(observed, { isLost: true });
  }
  context.memory.contentions.delete(claim.metadata.uid);
  return settled;
}

/** When GetCapacity fails, the claim is taken anyway, so that its user gets an error report. */
async function hasRoom(
  context: ClaimContext,
  observed: ObservedClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const claim = claimOf(observed);
  try {
    return await askForRoom(context, observed, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    context.env.logger.warn("GetCapacity failed; provisioning anyway", { error });
    return true;
  } finally {
    // What was seen here is no attempt.
    context.memory.topologies.delete(claim.metadata.uid);
  }
}

async function askForRoom(
  context: ClaimContext,
  observed: ObservedClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const { driver, timeoutMs, ownNode: own } = context;
  const { storageClass } = observed;
  if (own === undefined || storageClass === undefined) return true;
  const prepared = await prepareVolume(context, claimOf(observed), storageClass, own.name, signal);
  const { request, migrated, requiredBytes } = prepared;
  const { availableCapacity, maximumVolumeSize } = await driver.csi.controller.getCapacity(
    {
      ...(request.volumeCapabilities === undefined ? {} : { volumeCapabilities: request.volumeCapabilities }),
      ...(request.parameters === undefined ? {} : { parameters: request.parameters }),
      ...(own.segments === undefined ? {} : { accessibleTopology: { segments: { ...own.segments } } }),
    },
    { signal, timeoutMs, migrated },
  );
  if (maximumVolumeSize !== undefined && requiredBytes > maximumVolumeSize) return false;
  return requiredBytes <= availableCapacity;
}
