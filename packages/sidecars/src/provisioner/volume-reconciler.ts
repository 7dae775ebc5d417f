/**
 * Protects volumes of the driver with a finalizer, and deletes released ones together with their disks.
 *
 * Invariants
 *  - DeleteVolume is called only for a volume that the server itself, asked at that moment, shows as ours,
 *    Released, with policy Delete, and that no attachment names.
 *  - The object goes only after the disk.
 */
import {
  type EventRecorder,
  type Informer,
  involvedObject,
  isNotFound,
  type PersistentVolume,
  type ReconcileResult,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { assertNever, errorChain } from "@longshore/runtime";
import { provisionerFinalizer } from "@longshore/storage";
import type { SidecarEnv } from "../common/env.ts";
import { addFinalizerPatch, type JsonPatchStep, removeFinalizerPatch } from "../common/finalizers.ts";
import { type DeleteContext, deleteVolume } from "./delete-volume.ts";
import { isVolumeHere, type OwnNode } from "./node-deployment.ts";
import type { ProvisionerMetrics } from "./provisioner-metrics.ts";
import { decideVolumeStep } from "./volume-step.ts";

/** What the reconciler works with. */
export interface VolumeContext extends DeleteContext {
  readonly env: SidecarEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly volumes: Pick<Informer<PersistentVolume>, "get">;
  readonly protectVolumes: boolean;
  /** The only node whose volumes are served; undefined: all are. */
  readonly ownNode: OwnNode | undefined;
  readonly metrics: ProvisionerMetrics;
  /** Called with the class that lost a volume. */
  readonly onCapacityChanged: (storageClassName: string) => void;
}

/** One pass over the volume of this name. */
export async function reconcileVolume(
  context: VolumeContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const pv = context.volumes.get(name);
  if (pv === undefined || !isVolumeHere(context.ownNode, pv)) return settled;
  const step = decideVolumeStep(context.driver, pv, context.protectVolumes);
  switch (step) {
    case "none":
      return settled;
    case "protect":
      await setProtection(context, pv, true, signal);
      return settled;
    case "unprotect":
      await setProtection(context, pv, false, signal);
      return settled;
    case "delete":
      return deleteReleased(context, name, signal);
    default:
      return assertNever(step);
  }
}

async function deleteReleased(
  context: VolumeContext,
  name: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { kube } = context.env;
  const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
  if (pv === undefined || decideVolumeStep(context.driver, pv, context.protectVolumes) !== "delete")
    return settled;
  const startedMs = context.env.clock.monotonicMs();
  try {
    await deleteVolume(context, pv, signal);
  } catch (error) {
    if (!signal.aborted) {
      context.metrics.deleteFailed(pv);
      const subject = involvedObject(resources.persistentVolumes, pv);
      context.events.event(subject, "Warning", "VolumeFailedDelete", errorChain(error));
    }
    throw error;
  }
  context.onCapacityChanged(pv.spec?.storageClassName ?? "");
  await kube.delete(resources.persistentVolumes, { name }, { signal, uid: pv.metadata.uid });
  // The place of our finalizer is tested: where others changed the list meanwhile, the next pass does it.
  await patchFinalizer(context, pv, false, signal);
  context.metrics.deleted(pv, context.env.clock.monotonicMs() - startedMs);
  return settled;
}

/**
 * Adds or removes our finalizer on the version that was seen; with any other version the patch fails, and the next pass
 * reads the current state.
 */
async function setProtection(
  context: VolumeContext,
  pv: Stored<PersistentVolume>,
  on: boolean,
  signal: AbortSignal,
): Promise<void> {
  const value = pv.metadata.resourceVersion;
  await patchFinalizer(context, pv, on, signal, [{ op: "test", path: "/metadata/resourceVersion", value }]);
}

/** With a patch, since the reference's role may not update volumes. One that comes too late fails, and is retried. */
async function patchFinalizer(
  { env }: VolumeContext,
  pv: Stored<PersistentVolume>,
  on: boolean,
  signal: AbortSignal,
  tests: readonly JsonPatchStep[] = [],
): Promise<void> {
  const { name, finalizers } = pv.metadata;
  const isOn = (finalizers ?? []).includes(provisionerFinalizer);
  if (isOn === on) return;
  const change = on ? addFinalizerPatch : removeFinalizerPatch;
  const body = [...tests, ...change(finalizers, provisionerFinalizer)];
  try {
    await env.kube.patch(resources.persistentVolumes, { name }, { type: "json", body }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
