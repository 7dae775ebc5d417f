/**
 * Block volumes: the driver stages a volume once and publishes it for each pod, as a device instead of a file system.
 * Source: docs/behaviour/csi-plugin.md 10.
 *
 * Invariants
 *  - `vol_data.json` is on disk before NodeStageVolume is first called, and goes only after the volume is certainly
 *    not staged: a crash between the two can always be cleaned up.
 *  - A file that was there before says that the volume may be staged: no error of a later call takes that back.
 */
import type { CSIPersistentVolumeSource, PersistentVolume, Pod } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import { nodeErrorKind, UncertainProgressError } from "../../framework/node-error-kind.ts";
import type { BlockVolumeMapper } from "../../framework/volume-plugin.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import {
  blockDataDirectory,
  blockPublishDirectory,
  blockPublishPath,
  blockStagingPath,
  blockVolumePaths,
} from "./csi-block-paths.ts";
import { removeBlockRemains } from "./csi-block-unmapper.ts";
import {
  blockCapability,
  classified,
  type NodeCalls,
  type NodeCapabilities,
  nodeCallIsFinal,
  nodeCapabilities,
  requireDriver,
  stages,
  withDriver,
} from "./csi-client.ts";
import {
  type CsiNodeContext,
  CsiSpecError,
  csiDriverPolicy,
  csiVolumeOf,
  orTransient,
} from "./csi-node-context.ts";
import { publishContextOf, secretsOf } from "./csi-node-requests.ts";
import { hasVolData, writeVolData } from "./vol-data.ts";

/** One volume for one pod. */
interface Mapping {
  readonly spec: VolumeSpec;
  readonly pv: PersistentVolume;
  readonly source: CSIPersistentVolumeSource;
  readonly volumeName: string;
  readonly podUID: string;
  readonly readOnly: boolean;
}

/** A mapper of the volume for the pod. */
export function csiBlockMapper(context: CsiNodeContext, spec: VolumeSpec, pod: Pod): BlockVolumeMapper {
  const { pv, source } = csiVolumeOf(spec);
  const volumeName = specName(spec);
  const podUID = pod.metadata?.uid ?? "";
  const readOnly = spec.readOnly || source.readOnly === true;
  const mapping = { spec, pv, source, volumeName, podUID, readOnly };
  return {
    ...blockVolumePaths(context.kubelet.rootDir, volumeName, podUID),
    readOnly,
    setUpDevice: (signal) => setUpDevice(context, mapping, signal),
    mapPodDevice: (signal) => mapPodDevice(context, mapping, signal),
  };
}

async function setUpDevice(context: CsiNodeContext, mapping: Mapping, signal: AbortSignal): Promise<string> {
  const { host, rootDir } = context.kubelet;
  const mayBeStaged = await hasVolData(host, blockDataDirectory(rootDir, mapping.volumeName));
  try {
    await stage(context, mapping, mayBeStaged, signal);
    return ""; // A staging path is no device: only publishing gives one.
  } catch (error) {
    if (!mayBeStaged || nodeErrorKind(error) !== "final") throw error;
    // This call has staged nothing; whether an earlier one did, its answer does not say.
    throw new UncertainProgressError(`volume ${mapping.source.volumeHandle} may be staged from before`, {
      cause: error,
    });
  }
}

async function stage(
  context: CsiNodeContext,
  mapping: Mapping,
  mayBeStaged: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { spec, pv, source, volumeName } = mapping;
  const { host, rootDir } = context.kubelet;
  const stagingPath = blockStagingPath(rootDir, volumeName);
  await orTransient(`volume ${source.volumeHandle} cannot be staged yet`, async () =>
    requireDriver(context, source.driver),
  );
  await withDriver(context, { driver: source.driver, spec }, signal, async (calls) => {
    const capabilities = await capabilitiesOf(source, calls);
    const isStaged = stages(capabilities);
    const publishContext = await publishContextFor(context, source, calls);
    const secrets = await orTransient(`volume ${source.volumeHandle}: nodeStageSecretRef`, () =>
      secretsOf(context, isStaged ? source.nodeStageSecretRef : undefined, calls.options.signal),
    );
    await orTransient(`the directories of volume ${source.volumeHandle} cannot be prepared`, async () => {
      await writeBlockVolData(context, mapping);
      await host.makeDirectory(stagingPath);
    });
    if (!isStaged) return;
    try {
      await classified(`NodeStageVolume of ${source.volumeHandle} may be in progress`, () =>
        calls.node.nodeStageVolume(
          {
            volumeId: source.volumeHandle,
            publishContext,
            stagingTargetPath: stagingPath,
            volumeCapability: blockCapability({ accessModes: pv.spec?.accessModes, capabilities }),
            secrets,
            volumeContext: { ...source.volumeAttributes },
          },
          calls.options,
        ),
      );
    } catch (error) {
      if (nodeCallIsFinal(error) && !mayBeStaged) await removeBlockRemains(context.kubelet, volumeName);
      throw error;
    }
  });
}

/** Publishes the volume. @returns the device's path */
async function mapPodDevice(context: CsiNodeContext, mapping: Mapping, signal: AbortSignal): Promise<string> {
  const { volumeName, podUID, source } = mapping;
  const { host, rootDir } = context.kubelet;
  const path = blockPublishPath(rootDir, volumeName, podUID);
  try {
    await publish(context, mapping, path, signal);
    return path;
  } catch (error) {
    // A driver may fail after it has made the target; what it leaves there, NodeUnpublishVolume alone may remove.
    if (nodeErrorKind(error) !== "final" || (await host.stat(path)) === undefined) throw error;
    throw new UncertainProgressError(`volume ${source.volumeHandle} may be published nevertheless`, {
      cause: error,
    });
  }
}

async function publish(
  context: CsiNodeContext,
  { spec, pv, source, volumeName, readOnly }: Mapping,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const { host, rootDir } = context.kubelet;
  const handle = source.volumeHandle;
  await orTransient(`volume ${handle} cannot be published yet`, async () =>
    requireDriver(context, source.driver),
  );
  await withDriver(context, { driver: source.driver, spec }, signal, async (calls) => {
    const capabilities = await capabilitiesOf(source, calls);
    const publishContext = await publishContextFor(context, source, calls);
    const secrets = await orTransient(`volume ${handle}: nodePublishSecretRef`, () =>
      secretsOf(context, source.nodePublishSecretRef, calls.options.signal),
    );
    await orTransient(`the directory of volume ${handle} cannot be prepared`, () =>
      host.makeDirectory(blockPublishDirectory(rootDir, volumeName)),
    );
    await classified(`NodePublishVolume of ${handle} may be in progress`, () =>
      calls.node.nodePublishVolume(
        {
          volumeId: handle,
          publishContext,
          // Always set, also for a driver that stages nothing (docs/behaviour/csi-plugin.md 10).
          stagingTargetPath: blockStagingPath(rootDir, volumeName),
          targetPath: path,
          volumeCapability: blockCapability({ accessModes: pv.spec?.accessModes, capabilities }),
          readonly: readOnly,
          secrets,
          volumeContext: { ...source.volumeAttributes },
        },
        calls.options,
      ),
    );
  });
}

function capabilitiesOf({ driver }: CSIPersistentVolumeSource, calls: NodeCalls): Promise<NodeCapabilities> {
  return orTransient(`driver ${driver} cannot be asked what it can do`, () => nodeCapabilities(calls));
}

/** What the driver's controller returned on attaching. @throws CsiSpecError when the driver has no persistent volumes */
async function publishContextFor(
  context: CsiNodeContext,
  source: CSIPersistentVolumeSource,
  { options: { signal } }: NodeCalls,
): Promise<Record<string, string>> {
  const policy = await orTransient(`CSIDriver ${source.driver} cannot be read`, () =>
    csiDriverPolicy(context, source.driver, signal),
  );
  if (!policy.volumeLifecycleModes.includes("Persistent")) {
    throw new CsiSpecError(
      `CSIDriver ${source.driver}: spec.volumeLifecycleModes lacks Persistent, which volume ${source.volumeHandle} needs`,
    );
  }
  if (!policy.attachRequired) return {};
  return orTransient(`volume ${source.volumeHandle} has no publish context`, () =>
    publishContextOf(context, source, signal),
  );
}

/** Durable, and with it every link that was made before. */
async function writeBlockVolData(context: CsiNodeContext, { source, volumeName }: Mapping): Promise<void> {
  const { host, rootDir, nodeName } = context.kubelet;
  const directory = blockDataDirectory(rootDir, volumeName);
  await host.makeDirectory(directory);
  await writeVolData(host, directory, {
    specVolID: volumeName,
    volumeHandle: source.volumeHandle,
    driverName: source.driver,
    nodeName,
    attachmentID: attachmentName(source.volumeHandle, source.driver, nodeName),
  });
}
