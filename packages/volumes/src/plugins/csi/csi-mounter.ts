/**
 * Publishing: a staged volume is made visible in one pod. Source: docs/behaviour/csi-plugin.md 9.
 *
 * Invariants
 *  - The pod's `vol_data.json` is on disk before NodePublishVolume is first called, so unpublishing
 *    works from it alone after a restart.
 *  - The spec is never changed; what is added to the attributes is added to a copy.
 */
import type { CSIPersistentVolumeSource, PersistentVolume, Pod } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import type { Mounter, MounterArgs, Unmounter } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import {
  classified,
  mountCapability,
  nodeCallIsFinal,
  requireDriver,
  stagesVolumes,
  withDriver,
} from "./csi-client.ts";
import { stagingPathOf } from "./csi-device-mounter.ts";
import { csiPluginName } from "./csi-names.ts";
import {
  type CsiDriverPolicy,
  type CsiNodeContext,
  CsiSpecError,
  csiDriverPolicy,
  csiVolumeOf,
  orTransient,
} from "./csi-node-context.ts";
import { mountOptionsOf, podInfoAttributes, publishContextOf, secretsOf } from "./csi-node-requests.ts";
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

/** A mounter of the volume for the pod. */
export function csiMounter(context: CsiNodeContext, spec: VolumeSpec, pod: Pod): Mounter {
  const { pv, source } = csiVolumeOf(spec);
  const podUID = pod.metadata?.uid ?? "";
  const directory = podVolumeDirectory(context, podUID, specName(spec));
  const path = `${directory}/mount`;
  const readOnly = spec.readOnly || source.readOnly === true;
  const data: VolData = {
    specVolID: specName(spec),
    volumeHandle: source.volumeHandle,
    driverName: source.driver,
    nodeName: context.kubelet.nodeName,
    attachmentID: attachmentName(source.volumeHandle, source.driver, context.kubelet.nodeName),
    volumeLifecycleMode: "Persistent",
  };
  return {
    getPath: () => path,
    readOnly,
    async setUp(args, signal) {
      await orTransient(`volume ${source.volumeHandle} cannot be published yet`, async () =>
        requireDriver(context, source.driver),
      );
      const policy = await publish(context, { spec, pod, pv, source, path, readOnly, data }, signal);
      await applyFsGroup(context, { pv, source, path, readOnly }, args, policy);
    },
  };
}

interface Publication {
  readonly spec: VolumeSpec;
  readonly pod: Pod;
  readonly pv: PersistentVolume;
  readonly source: CSIPersistentVolumeSource;
  readonly path: string;
  readonly readOnly: boolean;
  readonly data: VolData;
}

async function publish(
  context: CsiNodeContext,
  { spec, pod, pv, source, path, readOnly, data }: Publication,
  signal: AbortSignal,
): Promise<CsiDriverPolicy> {
  const { host } = context.kubelet;
  const handle = source.volumeHandle;
  return withDriver(context, source.driver, signal, async (calls) => {
    const callSignal = calls.options.signal;
    const policy = await orTransient(`CSIDriver ${source.driver} cannot be read`, () =>
      csiDriverPolicy(context, source.driver, callSignal),
    );
    if (!policy.volumeLifecycleModes.includes("Persistent")) {
      throw new CsiSpecError(
        `CSIDriver ${source.driver}: spec.volumeLifecycleModes lacks Persistent, which volume ${handle} needs`,
      );
    }
    const stages = await orTransient(
      `driver ${source.driver} cannot be asked whether it stages volumes`,
      () => stagesVolumes(calls),
    );
    const publishContext = await orTransient(`volume ${handle} has no publish context`, () =>
      policy.attachRequired ? publishContextOf(context, source, callSignal) : Promise.resolve({}),
    );
    const secrets = await orTransient(`volume ${handle}: nodePublishSecretRef`, () =>
      secretsOf(context, source.nodePublishSecretRef, callSignal),
    );
    const podInfo = policy.podInfoOnMount ? podInfoAttributes(pod) : {};
    const directory = path.slice(0, path.lastIndexOf("/"));
    await orTransient(`the directory of volume ${handle} cannot be prepared`, async () => {
      await host.makeDirectory(directory);
      await writeVolData(host, directory, data);
    });
    try {
      await classified(`NodePublishVolume of ${handle} may be in progress`, () =>
        calls.node.nodePublishVolume(
          {
            volumeId: handle,
            publishContext,
            stagingTargetPath: stages ? stagingPathOf(context, spec) : "",
            targetPath: path,
            volumeCapability: mountCapability(pv.spec?.accessModes, source.fsType, mountOptionsOf(pv)),
            readonly: readOnly,
            secrets,
            volumeContext: { ...source.volumeAttributes, ...podInfo },
          },
          calls.options,
        ),
      );
    } catch (error) {
      if (nodeCallIsFinal(error)) await removeMountDirectory(host, path);
      throw error;
    }
    return policy;
  });
}

/** Whether the group of the volume's files is to be changed. Source: docs/behaviour/csi-plugin.md 9.6. */
export function fsGroupApplies(
  policy: string,
  volume: {
    readonly readOnly: boolean;
    readonly fsType?: string | undefined;
    readonly accessModes: readonly string[];
  },
): boolean {
  if (policy === "None" || volume.readOnly) return false;
  if (policy === "File") return true;
  return (volume.fsType ?? "") !== "" && volume.accessModes.includes("ReadWriteOnce");
}

async function applyFsGroup(
  context: CsiNodeContext,
  volume: Pick<Publication, "pv" | "source" | "path" | "readOnly">,
  args: MounterArgs,
  policy: CsiDriverPolicy,
): Promise<void> {
  const { pv, source, path, readOnly } = volume;
  const facts = { readOnly, fsType: source.fsType, accessModes: pv.spec?.accessModes ?? [] };
  if (args.fsGroup === undefined || !fsGroupApplies(policy.fsGroupPolicy, facts)) return;
  try {
    await context.kubelet.host.chownTree(path, args.fsGroup);
  } catch (cause) {
    // The volume is published already: it has to be torn down before it is forgotten.
    throw new UncertainProgressError(
      `the files of volume ${source.volumeHandle} could not be given to the pod's fsGroup`,
      {
        cause,
      },
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
        await withDriver(context, data.driverName, signal, ({ node, options }) =>
          node.nodeUnpublishVolume({ volumeId: data.volumeHandle, targetPath: path }, options),
        );
      }
      // Kubernetes calls it done even when it is still mounted; a detach would then lose data.
      await removeUnmountedDirectory(host, path);
    },
  };
}
