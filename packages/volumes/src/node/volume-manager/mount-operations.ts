/**
 * The operations on one volume, each a sequence of plugin calls whose outcome goes into the actual
 * state. Source: docs/behaviour/node-agent.md 7.
 */
import {
  type EventRecorder,
  type KubeClient,
  type Node,
  nodeSelectorMatches,
  resources,
} from "@longshore/kube";
import { type Host, type RuntimeEnv, withAnyOf, withDeadline } from "@longshore/runtime";
import { UncertainProgressError } from "../../framework/node-errors.ts";
import { isAttachable, isDeviceMountable } from "../../framework/plugin.ts";
import { specName, type VolumeSpec } from "../../framework/spec.ts";
import type { ActualPod, ActualState, ActualVolume } from "./actual-state.ts";
import type { DesiredPod, DesiredVolume } from "./desired-state.ts";
import { expandOnNode } from "./node-expand.ts";

const waitForAttachTimeoutMs = 600_000;

/** An operation cannot go on as things stand. */
export class VolumeOperationError extends Error {
  override readonly name = "VolumeOperationError";
}

/** What operations work with. */
export interface OperationEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly host: Host;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly actual: ActualState;
  readonly events: Pick<EventRecorder, "event">;
  isReportedInUse(uniqueName: string): boolean;
}

/**
 * Takes a volume into the actual state once the controller says that it is attached here. The name
 * in `status.volumesAttached` must be identical, and ours must stand in `status.volumesInUse`:
 * before that the controller might be detaching it.
 * @returns false: not yet, look again when the Node changes
 */
export async function verifyControllerAttached(
  env: OperationEnv,
  volume: DesiredVolume,
  spec: VolumeSpec,
  signal: AbortSignal,
): Promise<boolean> {
  const { uniqueName, plugin, attachable, origin } = volume;
  const known = { uniqueName, spec, plugin, attachable, origin };
  if (!attachable) {
    env.actual.markAttached(known, "");
    return true;
  }
  if (!env.isReportedInUse(uniqueName)) return false;
  const node = await getNode(env, signal);
  const attached = node.status?.volumesAttached?.find(({ name }) => name === uniqueName);
  // The report may have been taken back while the node was read.
  if (attached === undefined || !env.isReportedInUse(uniqueName)) return false;
  env.actual.markAttached(known, attached.devicePath);
  return true;
}

/**
 * Mounts the volume's device if need be, and the volume in the pod.
 * @param giveUp ends the wait for the device, and nothing else: a mount that has begun is finished
 */
export async function mountVolume(
  env: OperationEnv,
  volume: DesiredVolume,
  { pod, spec }: DesiredPod,
  signal: AbortSignal,
  giveUp: AbortSignal,
): Promise<void> {
  const { uniqueName, plugin } = volume;
  const affinity = spec.persistentVolume?.spec?.nodeAffinity?.required;
  if (affinity != null && !nodeSelectorMatches(await getNode(env, signal), affinity)) {
    throw new VolumeOperationError(
      `PersistentVolume ${specName(spec)}: spec.nodeAffinity does not match node ${env.nodeName}`,
    );
  }
  const mounter = await plugin.newMounter(spec, pod);
  const devicePath = await waitForAttach(env, volume, spec, signal, giveUp);
  let isExpanded = await mountDevice(env, volume, { pod, spec }, devicePath, signal);
  const mount: Omit<ActualPod, "state"> = {
    podUID: pod.metadata.uid,
    volumeName: specName(spec),
    path: mounter.getPath(),
    readOnly: mounter.readOnly,
  };
  const { fsGroup, fsGroupChangePolicy } = pod.spec?.securityContext ?? {};
  try {
    await mounter.setUp(
      {
        ...(fsGroup != null && { fsGroup }),
        ...(fsGroupChangePolicy != null && {
          fsGroupChangePolicy: fsGroupChangePolicy as "OnRootMismatch" | "Always",
        }),
      },
      signal,
    );
  } catch (error) {
    env.actual.podMountFailed(uniqueName, mount, error);
    throw error;
  }
  if (!isExpanded) {
    const deviceMountPath = env.actual.get(uniqueName)?.device.path ?? "";
    const where = { spec, devicePath, deviceMountPath, path: mount.path, phase: "published" } as const;
    try {
      isExpanded = await expandOnNode(env, plugin, pod, where, signal);
    } catch (error) {
      env.actual.podMountFailed(uniqueName, mount, mountedAllTheSame(error));
      throw error;
    }
  }
  env.actual.markPodMounted(uniqueName, mount);
}

/** What was mounted before its growth failed must be unmounted before it is forgotten. */
function mountedAllTheSame(cause: unknown): UncertainProgressError {
  return new UncertainProgressError("mounted, but not grown", { cause });
}

function waitForAttach(
  env: OperationEnv,
  { uniqueName, plugin, attachable }: DesiredVolume,
  spec: VolumeSpec,
  signal: AbortSignal,
  giveUp: AbortSignal,
): Promise<string> {
  const reported = env.actual.get(uniqueName)?.devicePath ?? "";
  if (!attachable || !isAttachable(plugin)) return Promise.resolve(reported);
  const attacher = plugin.newAttacher();
  return withDeadline(env.clock, waitForAttachTimeoutMs, signal, (waitSignal) =>
    withAnyOf([waitSignal, giveUp], (either) => attacher.waitForAttach(spec, reported, either)),
  );
}

/** @returns whether what is on the volume has grown with it */
async function mountDevice(
  env: OperationEnv,
  { uniqueName, plugin, deviceMountable }: DesiredVolume,
  { pod, spec }: Pick<DesiredPod, "pod" | "spec">,
  devicePath: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (!deviceMountable || !isDeviceMountable(plugin)) return false;
  if (env.actual.get(uniqueName)?.device.state === "mounted") return false;
  const mounter = plugin.newDeviceMounter();
  const path = mounter.getDeviceMountPath(spec);
  try {
    await mounter.mountDevice(spec, devicePath, path, signal);
  } catch (error) {
    env.actual.deviceMountFailed(uniqueName, path, error);
    throw error;
  }
  const where = { spec, devicePath, deviceMountPath: path, path, phase: "staged" } as const;
  let isExpanded: boolean;
  try {
    isExpanded = await expandOnNode(env, plugin, pod, where, signal);
  } catch (error) {
    env.actual.deviceMountFailed(uniqueName, path, mountedAllTheSame(error));
    throw error;
  }
  env.actual.markDeviceMounted(uniqueName, path);
  return isExpanded;
}

/** Unmounts the volume from the pod, knowing no more than its directory's name. */
export async function unmountVolume(
  env: OperationEnv,
  { uniqueName, plugin }: ActualVolume,
  { podUID, volumeName }: ActualPod,
  signal: AbortSignal,
): Promise<void> {
  const unmounter = await plugin.newUnmounter(volumeName, podUID);
  await unmounter.tearDown(signal);
  env.actual.markPodUnmounted(uniqueName, podUID);
}

/** Unmounts the volume's device, once no pod's directory shares it any more. */
export async function unmountDevice(
  env: OperationEnv,
  { uniqueName, plugin, device }: ActualVolume,
  signal: AbortSignal,
): Promise<void> {
  if (!isDeviceMountable(plugin)) return;
  await requireNoOtherMounts(env, device.path);
  await plugin.newDeviceUnmounter().unmountDevice(device.path, signal);
  env.actual.markDeviceUnmounted(uniqueName);
}

/** A mount in a pod's directory that shares the device would be cut off from it. */
async function requireNoOtherMounts(env: OperationEnv, devicePath: string): Promise<void> {
  const mounts = await env.host.listMounts(env.rootDir);
  const device = mounts.find(({ target }) => target === devicePath);
  const pods = `${env.rootDir}/pods/`;
  const other = mounts.find(
    ({ source, target }) =>
      target.startsWith(pods) &&
      (source === devicePath || (source.startsWith("/") && source === device?.source)),
  );
  if (other !== undefined) {
    throw new VolumeOperationError(`${devicePath} is still mounted at ${other.target}: that must go first`);
  }
}

async function getNode(env: OperationEnv, signal: AbortSignal): Promise<Node> {
  const node = await env.kube.get(resources.nodes, { name: env.nodeName }, { signal });
  if (node === undefined) throw new VolumeOperationError(`Node ${env.nodeName} does not exist: register it`);
  return node;
}
