/** The actions that grow a mounted volume while pods use it. Source: docs/behaviour/node-agent.md 7.6. */
import {
  type Actions,
  involvedObject,
  KubeApiError,
  type Next,
  observeAgain,
  type Pass,
  type PersistentVolumeClaim,
  type Pod,
  parseQuantity,
  resources,
  type Stored,
} from "@longshore/kube";
import { errorChain, withAnyOf, withDeadline } from "@longshore/runtime";
import { isAttachable } from "../../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../../framework/volume-spec.ts";
import type { DesiredPod, DesiredVolume } from "../desired-state.ts";
import type { GrowthStep } from "./decide-growth-step.ts";
import type { ObservedVolume, VolumeStep } from "./decide-volume-step.ts";
import { expandOnNode } from "./expand-on-node.ts";
import { measureEnd } from "./measure-end.ts";
import type { VolumeActionsEnv } from "./volume-actions-env.ts";
import { VolumeOperationError } from "./volume-places.ts";
import { wholeVolume } from "./volume-records.ts";
import { resizingLookMs, sizeLookMs } from "./volume-sizes.ts";

/** A mounted volume's device is there; one that is not has vanished. */
const deviceTimeoutMs = 120_000;

type GrowInUse = Extract<GrowthStep, { readonly step: "growInUse" }>;

/** The actions of a growth, by step. */
export function growthActions(
  env: VolumeActionsEnv,
): Pick<Actions<ObservedVolume, VolumeStep>, GrowthStep["step"]> {
  return {
    lookAtSize: (step, observed, pass) =>
      attempted(observed, pass, () => lookAtSize(env, step.pod, pass), env),
    growInUse: (step, observed, pass) =>
      attempted(observed, pass, () => growInUse(env, step, observed, pass), env),
  };
}

/** Runs the work; a failure is repeated after the back-off of the whole volume. */
async function attempted(
  observed: ObservedVolume,
  { key, signal }: Pass,
  work: () => Promise<void>,
  env: VolumeActionsEnv,
): Promise<Next<ObservedVolume>> {
  try {
    await work();
    env.records.succeeded(key, wholeVolume);
    return observeAgain;
  } catch (error) {
    signal.throwIfAborted();
    const failed = { operation: "volume_fs_resize", subject: wholeVolume, error } as const;
    return { observed: { ...observed, failed } };
  }
}

/** One GET while nothing is being resized: the volume is read only when its claim waits for the node. */
async function lookAtSize(env: VolumeActionsEnv, { spec }: DesiredPod, { key, signal }: Pass): Promise<void> {
  const nowMs = env.clock.monotonicMs();
  const { name = "", namespace = "", uid } = spec.persistentVolume?.spec?.claimRef ?? {};
  const claim = await env.kube
    .get(resources.persistentVolumeClaims, { name, namespace }, { signal })
    .catch((error: unknown) => {
      // Its pod has no object any more, although containers of it run: the claim is not this node's to read.
      if (error instanceof KubeApiError && error.code === 403) return undefined;
      throw error;
    });
  // Another claim of that name is not what the pod has mounted.
  if (claim === undefined || (uid !== undefined && claim.metadata.uid !== uid)) {
    env.sizes.lookLater(key, nowMs);
    return;
  }
  const size = waitsForNode(claim) ? await grownSize(env, spec, claim, signal) : undefined;
  if (size !== undefined) env.sizes.found(key, size, nowMs);
  else env.sizes.lookLater(key, nowMs, asksForMore(claim) ? resizingLookMs : sizeLookMs);
}

/** The resize has been done but for the node's part. Source: docs/behaviour/controllers.md Part C. */
function waitsForNode({ status }: PersistentVolumeClaim): boolean {
  const state = status?.allocatedResourceStatuses?.storage;
  if (state === "NodeResizePending" || state === "NodeResizeInProgress") return true;
  return (status?.conditions ?? []).some(
    (condition) => condition.type === "FileSystemResizePending" && condition.status === "True",
  );
}

function asksForMore({ spec, status }: PersistentVolumeClaim): boolean {
  const wanted = spec?.resources?.requests?.storage;
  const has = status?.capacity?.storage;
  return wanted !== undefined && has !== undefined && isMore(wanted, has);
}

const isMore = (one: string, other: string) => parseQuantity(one).compare(parseQuantity(other)) > 0;

/** The capacity of the volume, where it is more than the claim says. */
async function grownSize(
  env: VolumeActionsEnv,
  spec: VolumeSpec,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name = "", uid } = spec.persistentVolume?.metadata ?? {};
  const volume = await env.kube.get(resources.persistentVolumes, { name }, { signal });
  // One that was made again under this name is not what is mounted here.
  if (volume === undefined || (uid !== undefined && volume.metadata.uid !== uid)) return undefined;
  const size = volume.spec?.capacity?.storage;
  const has = claim.status?.capacity?.storage;
  return size !== undefined && has !== undefined && isMore(size, has) ? size : undefined;
}

async function growInUse(
  env: VolumeActionsEnv,
  { volume, pod, mount, size }: GrowInUse,
  observed: ObservedVolume,
  { key, signal }: Pass,
): Promise<void> {
  const { actual } = observed;
  // It may have been unmounted, or its pod may have gone, since that was observed.
  if (actual === undefined || env.desired.podOf(key, mount.podUID) === undefined) return;
  // A pod that goes meanwhile is not forgotten while the driver works at its mount.
  const giveUp = env.mounts.begin(key, mount.podUID);
  const spec = withCapacity(pod.spec, size);
  try {
    const devicePath = await deviceOf(
      env,
      volume,
      { spec, pod: pod.pod, reported: actual.devicePath, giveUp },
      signal,
    );
    const where = { spec, devicePath, deviceMountPath: actual.device.path, path: mount.path } as const;
    const growth = await expandOnNode(env, volume.plugin, pod.pod, { ...where, phase: "published" }, signal);
    if (growth === "refused") env.sizes.refused(key);
    else if (growth === "grown") env.sizes.lookLater(key, env.clock.monotonicMs());
    else throw new VolumeOperationError(`plugin ${volume.plugin.pluginName} did not grow the volume`);
    measureEnd(env, observed, "volume_fs_resize", "success");
  } catch (error) {
    signal.throwIfAborted();
    if (!giveUp.aborted) emitFailure(env, pod, errorChain(error));
    throw error;
  } finally {
    env.mounts.end(key);
    env.onOperationEnd(mount.podUID);
  }
}

/** The spec with the size that the volume has by now. */
function withCapacity(spec: VolumeSpec, storage: string): VolumeSpec {
  const volume = spec.persistentVolume;
  const capacity = { ...volume?.spec?.capacity, storage };
  return { ...spec, persistentVolume: { ...volume, spec: { ...volume?.spec, capacity } } };
}

async function deviceOf(
  env: VolumeActionsEnv,
  { plugin, attachable }: DesiredVolume,
  device: {
    readonly spec: VolumeSpec;
    readonly pod: Pod;
    readonly reported: string;
    readonly giveUp: AbortSignal;
  },
  signal: AbortSignal,
): Promise<string> {
  const { spec, pod, reported, giveUp } = device;
  if (!attachable || !isAttachable(plugin)) return reported;
  const attacher = plugin.newAttacher();
  return withDeadline(env.clock, deviceTimeoutMs, signal, (waitSignal) =>
    withAnyOf([waitSignal, giveUp], (either) => attacher.waitForAttach(spec, reported, either, pod)),
  );
}

function emitFailure(env: VolumeActionsEnv, { pod, spec }: DesiredPod, reason: string): void {
  const { persistentVolume } = spec;
  const message = `PersistentVolume ${persistentVolume?.metadata?.name} could not grow while it is mounted: ${reason}`;
  env.events.event(involvedObject(resources.pods, pod), "Warning", "VolumeResizeFailed", message);
  const { name = "", namespace = "", uid } = persistentVolume?.spec?.claimRef ?? {};
  const metadata = { name, namespace, ...(uid !== undefined && { uid }) };
  const subject = involvedObject(resources.persistentVolumeClaims, { metadata });
  env.events.event(subject, "Warning", "VolumeResizeFailed", message);
}
