/**
 * Taking a claim with immediate binding for this provisioner's node (docs/behaviour/sidecars.md 2.10).
 *
 * Invariant: the claim is taken with the version that was seen, so that of several provisioners one wins; the others
 * find its node on the claim.
 */
import {
  isConflict,
  isDeleting,
  type PersistentVolumeClaim,
  type ReconcileResult,
  resources,
  type StorageClass,
  type Stored,
  settled,
} from "@longshore/kube";
import { accessibilityRequirements, selectedNodeAnnotation } from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { contentionDelayMs, type OwnNode } from "./node-deployment.ts";
import { type PreparedVolume, prepareVolume, type RequestContext } from "./volume-request.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** A claim that this process waits to take. */
export interface Contention {
  readonly races: number;
  /** On the monotonic clock. */
  readonly dueMs: number;
}

/** What taking claims works with. */
export interface ContentionContext extends RequestContext {
  readonly env: SidecarEnv;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** By claim uid. */
  readonly contentions: Map<string, Contention>;
}

/** One step towards taking the claim: waits, or takes it if there is room. */
export async function contendFor(
  context: ContentionContext,
  own: OwnNode,
  claim: Claim,
  storageClass: StorageClass,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { env, contentions } = context;
  const { uid } = claim.metadata;
  const isWanted = !isDeleting(claim) && !claim.spec?.volumeName;
  if (!isWanted || !fitsHere(context, own, claim, storageClass)) {
    contentions.delete(uid);
    return settled;
  }
  const nowMs = env.clock.monotonicMs();
  const waiting = contentions.get(uid) ?? pause(context, own, uid, 0);
  if (waiting.dueMs > nowMs) return { requeueAfterMs: waiting.dueMs - nowMs };
  if (!(await hasRoom(context, own, claim, storageClass, signal))) {
    const again = pause(context, own, uid, waiting.races);
    return { requeueAfterMs: again.dueMs - nowMs };
  }
  try {
    const annotations = { ...claim.metadata.annotations, [selectedNodeAnnotation]: own.name };
    const taken = { ...claim, metadata: { ...claim.metadata, annotations } };
    await env.kube.update(resources.persistentVolumeClaims, taken, { signal });
  } catch (error) {
    if (!isConflict(error)) throw error;
    const again = pause(context, own, uid, waiting.races + 1);
    return { requeueAfterMs: again.dueMs - nowMs };
  }
  contentions.delete(uid);
  return settled;
}

function pause(
  { env, contentions }: ContentionContext,
  own: OwnNode,
  uid: string,
  races: number,
): Contention {
  const dueMs = env.clock.monotonicMs() + contentionDelayMs(own, races, env.random);
  const contention = { races, dueMs };
  contentions.set(uid, contention);
  return contention;
}

/** Whether a class that allows only some places allows this one. */
function fitsHere(
  { driver, settings, csiNodes, nodes }: ContentionContext,
  own: OwnNode,
  claim: Claim,
  { allowedTopologies = [] }: StorageClass,
): boolean {
  if (allowedTopologies.length === 0) return true;
  try {
    accessibilityRequirements({
      driverName: driver.name,
      pvcName: claim.metadata.name,
      allowedTopologies,
      selectedNode: own.name,
      strictTopology: settings.strictTopology,
      immediateTopology: settings.immediateTopology,
      csiNodes: csiNodes(),
      nodes: nodes(),
    });
    return true;
  } catch {
    return false;
  }
}

/**
 * Asked as late as possible. When GetCapacity fails, the claim is taken anyway, so that its user gets an error report.
 */
async function hasRoom(
  context: ContentionContext,
  own: OwnNode,
  claim: Claim,
  storageClass: StorageClass,
  signal: AbortSignal,
): Promise<boolean> {
  const { driver, env, timeoutMs } = context;
  if (!driver.capabilities.controller.has("GET_CAPACITY")) return true;
  let prepared: PreparedVolume;
  try {
    prepared = await prepareVolume(context, claim, storageClass, own.name, signal);
    const { request, migrated } = prepared;
    const { availableCapacity, maximumVolumeSize } = await driver.csi.controller.getCapacity(
      {
        ...(request.volumeCapabilities === undefined
          ? {}
          : { volumeCapabilities: request.volumeCapabilities }),
        ...(request.parameters === undefined ? {} : { parameters: request.parameters }),
        ...(own.segments === undefined ? {} : { accessibleTopology: { segments: { ...own.segments } } }),
      },
      { signal, timeoutMs, migrated },
    );
    if (maximumVolumeSize !== undefined && prepared.requiredBytes > maximumVolumeSize) return false;
    return prepared.requiredBytes <= availableCapacity;
  } catch (error) {
    if (signal.aborted) throw error;
    env.logger.warn("the room for a claim cannot be asked for: it is taken all the same", { error });
    return true;
  } finally {
    // What was seen here is no attempt.
    context.topologies.delete(claim.metadata.uid);
  }
}
