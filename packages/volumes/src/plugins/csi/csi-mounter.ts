/**
 * Publishing: a volume is made visible in one pod. Source: docs/behaviour/csi-plugin.md 9.
 *
 * Invariants
 *  - The pod's `vol_data.json` is on disk before NodePublishVolume is first called, so unpublishing
 *    works from it alone after a restart.
 *  - The spec is never changed; what is added to the attributes is added to a copy.
 *  - A publish call for a volume that is mounted for certain takes nothing back when it fails.
 */
import type { Pod } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import { setVolumeOwnership } from "../../framework/set-volume-ownership.ts";
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import type { Mounter, MounterArgs, Unmounter } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import {
  classified,
  mountCapability,
  type NodeCalls,
  nodeCallIsFinal,
  nodeCapabilities,
  requireDriver,
  stages,
  withDriver,
} from "./csi-client.ts";
import { stagingPathOf } from "./csi-device-mounter.ts";
import { csiMountFacts, fsGroupApplies } from "./csi-mount-facts.ts";
import { csiPluginName } from "./csi-names.ts";
import {
  type CsiDriverPolicy,
  type CsiNodeContext,
  CsiSpecError,
  csiDriverPolicy,
  orTransient,
} from "./csi-node-context.ts";
import { podInfoAttributes, publishContextOf, secretsOf } from "./csi-node-requests.ts";
import { type CsiPodVolume, csiPodVolume } from "./csi-pod-volume.ts";
import { csiTokens } from "./csi-token-attributes.ts";
import {
  readVolData,
  removeMountDirectory,
  removeUnmountedDirectory,
  type VolData,
  VolDataError,
  writeVolData,
} from "./vol-data.ts";

/** The directory of a volume in a pod; the mount is its child `mount`. */
export function podVolumeDirectory(context: CsiNodeContext, podUID: string, volumeName: string): string {
  const escaped = escapeQualifiedName(volumeName);
  return kubeletPaths.podVolumeDir(context.kubelet.rootDir, podUID, csiPluginName, escaped);
}

/** A volume of a driver with `requiresRepublish` is published this often; tokens live ten minutes at least. */
const republishMs = 60_000;

/** What is published, and where. */
interface Publication {
  readonly spec: VolumeSpec;
  readonly pod: Pod;
  readonly volume: CsiPodVolume;
  readonly directory: string;
  readonly path: string;
  readonly args: MounterArgs;
}

/** What the driver and its CSIDriver object say, as of one setUp. */
interface DriverFacts {
  readonly policy: CsiDriverPolicy;
  /** The driver gives the files to the group itself. */
  readonly takesGroup: boolean;
}

/** A mounter of the volume for the pod. */
export function csiMounter(context: CsiNodeContext, spec: VolumeSpec, pod: Pod): Mounter {
  const volume = csiPodVolume(spec, pod);
  const directory = podVolumeDirectory(context, pod.metadata?.uid ?? "", specName(spec));
  const path = `${directory}/mount`;
  let requiresRepublish = false;
  return {
    getPath: () => path,
    readOnly: volume.readOnly,
    // One that was mounted with its label takes no other, nor does one whose file system has none.
    supportsSELinux: true,
    setUpAgainMs: () => (requiresRepublish ? republishMs : undefined),
    async setUp(args, signal) {
      await orTransient(`volume ${volume.volumeHandle} cannot be published yet`, async () =>
        requireDriver(context, volume.driver),
      );
      const facts = await publish(context, { spec, pod, volume, directory, path, args }, signal);
      requiresRepublish = facts.policy.requiresRepublish;
      await applyFsGroup(context, { volume, path, args }, facts);
    },
  };
}

async function publish(
  context: CsiNodeContext,
  publication: Publication,
  signal: AbortSignal,
): Promise<DriverFacts> {
  const { volume, path, args } = publication;
  return withDriver(context, { driver: volume.driver, spec: publication.spec }, signal, async (calls) => {
    const { policy, request, takesGroup } = await requestOf(context, publication, calls);
    await prepareDirectory(context, publication);
    try {
      await classified(`NodePublishVolume of ${volume.volumeHandle} may be in progress`, () =>
        calls.node.nodePublishVolume(request, calls.options),
      );
    } catch (error) {
      if (nodeCallIsFinal(error) && args.isMounted !== true)
        await removeMountDirectory(context.kubelet.host, path);
      throw error;
    }
    return { policy, takesGroup };
  });
}

/** Reads what the call needs; nothing of the volume is touched before all of it is there. */
async function requestOf(
  context: CsiNodeContext,
  { spec, pod, volume, path, args }: Publication,
  calls: NodeCalls,
) {
  const { signal } = calls.options;
  const { volumeHandle, driver } = volume;
  const policy = await orTransient(`CSIDriver ${driver} cannot be read`, () =>
    csiDriverPolicy(context, driver, signal),
  );
  requireLifecycle(policy, volume);
  const isPersistent = volume.lifecycle === "Persistent";
  const capabilities = await orTransient(`driver ${driver} cannot be asked what it can do`, () =>
    nodeCapabilities(calls),
  );
  const publishContext = await orTransient(`volume ${volumeHandle} has no publish context`, async () =>
    isPersistent && policy.attachRequired ? publishContextOf(context, volume, signal) : {},
  );
  const secrets = await orTransient(`volume ${volumeHandle}: nodePublishSecretRef`, () =>
    secretsOf(context, volume.nodePublishSecretRef, signal),
  );
  const facts = await orTransient(`the host cannot say whether it has SELinux`, () =>
    csiMountFacts(context.kubelet.host, volume, { args, policy, capabilities }),
  );
  const tokens = await orTransient(`volume ${volumeHandle}: tokens of the pod's service account`, () =>
    csiTokens(context, policy, pod, signal),
  );
  const podInfo = policy.podInfoOnMount ? podInfoAttributes(pod, volume.lifecycle) : {};
  const request = {
    volumeId: volumeHandle,
    publishContext,
    stagingTargetPath: isPersistent && stages(capabilities) ? stagingPathOf(context, spec) : "",
    targetPath: path,
    volumeCapability: mountCapability(
      { accessModes: volume.accessModes, capabilities },
      { fsType: volume.fsType, mountFlags: facts.mountOptions, volumeMountGroup: facts.mountGroup },
    ),
    readonly: volume.readOnly,
    secrets: { ...secrets, ...tokens.secrets },
    volumeContext: { ...volume.attributes, ...podInfo, ...tokens.context },
  };
  return { policy, request, takesGroup: facts.mountGroup !== "" };
}

/** @throws CsiSpecError when the driver does not say that it serves such volumes */
function requireLifecycle({ volumeLifecycleModes }: CsiDriverPolicy, volume: CsiPodVolume): void {
  const { lifecycle, driver, volumeHandle } = volume;
  if (volumeLifecycleModes.includes(lifecycle)) return;
  const what = lifecycle === "Persistent" ? `volume ${volumeHandle}` : "an inline volume of a pod";
  throw new CsiSpecError(
    `CSIDriver ${driver}: spec.volumeLifecycleModes lacks ${lifecycle}, which ${what} needs`,
  );
}

/**
 * Makes the pod's directory with the data file. Where it was there before, the volume may be published: a write that
 * fails leaves the file of that call.
 */
async function prepareDirectory(
  context: CsiNodeContext,
  { spec, volume, directory }: Publication,
): Promise<void> {
  const { kubelet } = context;
  const { volumeHandle, driver, lifecycle } = volume;
  const data: VolData = {
    specVolID: specName(spec),
    volumeHandle,
    driverName: driver,
    nodeName: kubelet.nodeName,
    attachmentID: attachmentName(volumeHandle, driver, kubelet.nodeName),
    volumeLifecycleMode: lifecycle,
  };
  await orTransient(`the directory of volume ${volumeHandle} cannot be prepared`, async () => {
    await kubelet.host.makeDirectory(directory);
    await writeVolData(kubelet.host, directory, data);
  });
}

async function applyFsGroup(
  context: CsiNodeContext,
  { volume, path, args }: Pick<Publication, "volume" | "path" | "args">,
  { policy, takesGroup }: DriverFacts,
): Promise<void> {
  const { fsGroup, fsGroupChangePolicy, isMounted } = args;
  if (fsGroup === undefined || takesGroup || !fsGroupApplies(policy.fsGroupPolicy, volume)) return;
  // Its files were given to the group when it was mounted; what containers have changed since is theirs.
  if (isMounted === true) return;
  const onlyOnRootMismatch = fsGroupChangePolicy === "OnRootMismatch";
  try {
    await setVolumeOwnership(context.volumeHost, path, fsGroup, { onlyOnRootMismatch });
  } catch (cause) {
    // The volume is published already: it has to be torn down before it is forgotten.
    throw new UncertainProgressError(
      `the files of volume ${volume.volumeHandle} could not be given to the pod's fsGroup`,
      { cause },
    );
  }
}

/** An unmounter that works from the data file alone. @throws VolDataError when there is none */
export async function csiUnmounter(
  context: CsiNodeContext,
  volumeName: string,
  podUID: string,
): Promise<Unmounter> {
  const directory = podVolumeDirectory(context, podUID, volumeName);
  const path = `${directory}/mount`;
  const { host } = context.kubelet;
  const data = await readVolData(host, directory);
  if (data === undefined && (await host.isMountPoint(path))) {
    throw new VolDataError(`${directory} is mounted but has no vol_data.json: unmount it by hand`);
  }
  return {
    getPath: () => path,
    async tearDown(signal) {
      if (data !== undefined) {
        await withDriver(context, { driver: data.driverName }, signal, ({ node, options }) =>
          node.nodeUnpublishVolume({ volumeId: data.volumeHandle, targetPath: path }, options),
        );
      }
      context.kubelet.tokens?.forgetPod(podUID);
      // Kubernetes calls it done even when it is still mounted; a detach would then lose data.
      await removeUnmountedDirectory(host, path);
    },
  };
}
