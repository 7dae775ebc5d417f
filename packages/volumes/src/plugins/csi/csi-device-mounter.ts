/**
 * Staging: a volume is mounted once on the node, for all its pods. Source: docs/behaviour/csi-plugin.md 8.
 *
 * Invariants
 *  - `vol_data.json` is on disk before NodeStageVolume is first called, and goes only after the
 *    volume is certainly not staged: a crash between the two can always be cleaned up.
 *  - A file that was there before says that the volume may be staged: no error of a later call takes that back.
 */
import { resources } from "@longshore/kube";
import { mountOptionsOf } from "../../framework/mount-options.ts";
import { nodeErrorKind, UncertainProgressError } from "../../framework/node-error-kind.ts";
import { escapeQualifiedName, kubeletPaths } from "../../framework/volume-host.ts";
import type { DeviceMounter, DeviceUnmounter, MounterArgs } from "../../framework/volume-plugin.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import {
  classified,
  mountCapability,
  nodeCallIsFinal,
  nodeCapabilities,
  requireDriver,
  stages,
  stagesVolumes,
  withDriver,
} from "./csi-client.ts";
import { csiMountFacts } from "./csi-mount-facts.ts";
import { csiPluginName } from "./csi-names.ts";
import {
  type CsiNodeContext,
  CsiSpecError,
  csiDriverPolicy,
  csiVolumeOf,
  orTransient,
} from "./csi-node-context.ts";
import { publishContextOf, secretsOf } from "./csi-node-requests.ts";
import {
  hasVolData,
  readVolData,
  removeMountDirectory,
  removeUnmountedDirectory,
  writeVolData,
} from "./vol-data.ts";

const globalMount = "globalmount";

/**
 * The staging directory of a PV. Its parent lies directly in `pv`, where an agent that starts looks for it: the name of a translated inline
 * vSphere disk has the disk's path in it.
 */
export function stagingPath(root: string, pvName: string): string {
  return `${kubeletPaths.pluginDir(root, csiPluginName)}/pv/${escapeQualifiedName(pvName)}/${globalMount}`;
}

/** The staging path of a spec. @throws CsiSpecError when the PV has no name */
export function stagingPathOf(context: CsiNodeContext, spec: VolumeSpec): string {
  const { pv } = csiVolumeOf(spec);
  const name = pv.metadata?.name ?? "";
  if (name === "") throw new CsiSpecError("a PersistentVolume without metadata.name cannot be staged");
  return stagingPath(context.kubelet.rootDir, name);
}

/** Stages volumes. */
export function csiDeviceMounter(context: CsiNodeContext): DeviceMounter {
  return {
    getDeviceMountPath: (spec) => stagingPathOf(context, spec),
    async mountDevice(spec, _devicePath, deviceMountPath, signal, args = {}) {
      const mayBeStaged = await hasVolData(context.kubelet.host, parentOf(deviceMountPath));
      try {
        await stage(context, { spec, deviceMountPath, mayBeStaged, args }, signal);
      } catch (error) {
        if (!mayBeStaged || nodeErrorKind(error) !== "final") throw error;
        // This call has staged nothing; whether an earlier one did, its answer does not say.
        throw new UncertainProgressError(`${deviceMountPath} may be staged from before`, { cause: error });
      }
    },
  };
}

/** What is staged, and where. */
interface Staging {
  readonly spec: VolumeSpec;
  readonly deviceMountPath: string;
  /** An earlier call may have staged the volume: whatever fails, the data file stays. */
  readonly mayBeStaged: boolean;
  readonly args: MounterArgs;
}

async function stage(context: CsiNodeContext, staging: Staging, signal: AbortSignal): Promise<void> {
  const { pv, source } = csiVolumeOf(staging.spec);
  await orTransient(`volume ${source.volumeHandle} cannot be staged yet`, async () =>
    requireDriver(context, source.driver),
  );
  await withDriver(context, { driver: source.driver, spec: staging.spec }, signal, async (calls) => {
    const callSignal = calls.options.signal;
    const capabilities = await orTransient(
      `driver ${source.driver} cannot be asked whether it stages volumes`,
      () => nodeCapabilities(calls),
    );
    const policy = await orTransient(`CSIDriver ${source.driver} cannot be read`, () =>
      csiDriverPolicy(context, source.driver, callSignal),
    );
    const publishContext = await orTransient(`volume ${source.volumeHandle} has no publish context`, () =>
      policy.attachRequired ? publishContextOf(context, source, callSignal) : Promise.resolve({}),
    );
    const secrets = await orTransient(`volume ${source.volumeHandle}: nodeStageSecretRef`, () =>
      secretsOf(context, stages(capabilities) ? source.nodeStageSecretRef : undefined, callSignal),
    );
    await orTransient(`the staging directory of volume ${source.volumeHandle} cannot be prepared`, () =>
      prepareStaging(context, staging, source),
    );
    // Directory and data file stay: unmountDevice needs them (docs/behaviour/csi-plugin.md 8.2).
    if (!stages(capabilities)) return;
    const volume = { accessModes: pv.spec?.accessModes ?? [], mountOptions: mountOptionsOf(pv) };
    const { args } = staging;
    const facts = await orTransient(`the host cannot say whether it has SELinux`, () =>
      csiMountFacts(context.kubelet.host, volume, { args, policy, capabilities }),
    );
    try {
      await classified(`NodeStageVolume of ${source.volumeHandle} may be in progress`, () =>
        calls.node.nodeStageVolume(
          {
            volumeId: source.volumeHandle,
            publishContext,
            stagingTargetPath: staging.deviceMountPath,
            volumeCapability: mountCapability(
              { accessModes: volume.accessModes, capabilities },
              { fsType: source.fsType, mountFlags: facts.mountOptions, volumeMountGroup: facts.mountGroup },
            ),
            secrets,
            volumeContext: { ...source.volumeAttributes },
          },
          calls.options,
        ),
      );
    } catch (error) {
      if (nodeCallIsFinal(error) && !staging.mayBeStaged)
        await removeMountDirectory(context.kubelet.host, staging.deviceMountPath);
      throw error;
    }
  });
}

/**
 * Makes the staging directory and the data file in its parent. When the write fails it leaves neither, unless the file
 * was there before: then the volume may be staged.
 */
async function prepareStaging(
  context: CsiNodeContext,
  { deviceMountPath, mayBeStaged }: Staging,
  source: { readonly volumeHandle: string; readonly driver: string },
): Promise<void> {
  const { host } = context.kubelet;
  const parent = parentOf(deviceMountPath);
  await host.makeDirectory(deviceMountPath);
  try {
    await writeVolData(host, parent, { volumeHandle: source.volumeHandle, driverName: source.driver });
  } catch (error) {
    if (!mayBeStaged) await removeMountDirectory(host, deviceMountPath).catch(() => {});
    throw error;
  }
}

/** Unstages volumes. */
export function csiDeviceUnmounter(context: CsiNodeContext): DeviceUnmounter {
  return {
    async unmountDevice(deviceMountPath, signal) {
      const { host } = context.kubelet;
      // The parent goes last: without it an earlier call has come to its end.
      if ((await host.stat(parentOf(deviceMountPath))) === undefined) return;
      const { driverName, volumeHandle } = await stagedVolume(context, deviceMountPath, signal);
      await withDriver(context, { driver: driverName }, signal, async (calls) => {
        if (!(await stagesVolumes(calls))) return;
        await calls.node.nodeUnstageVolume(
          { volumeId: volumeHandle, stagingTargetPath: deviceMountPath },
          calls.options,
        );
      });
      await removeUnmountedDirectory(host, deviceMountPath);
    },
  };
}

/** Which volume is staged at the path: from the data file, else from the PV that the path names. */
async function stagedVolume(
  context: CsiNodeContext,
  deviceMountPath: string,
  signal: AbortSignal,
): Promise<{ readonly driverName: string; readonly volumeHandle: string }> {
  const data = await readVolData(context.kubelet.host, parentOf(deviceMountPath)).catch(() => undefined);
  if (data !== undefined) return data;
  const match = /\/pv\/([^/]+)\/globalmount$/.exec(deviceMountPath);
  if (match?.[1] === undefined) {
    throw new CsiSpecError(`${deviceMountPath} is not a staging path and has no vol_data.json beside it`);
  }
  const name = match[1];
  const pv = await context.volumeHost.kube.get(resources.persistentVolumes, { name }, { signal });
  const source = pv?.spec?.csi;
  if (source == null) {
    throw new CsiSpecError(
      `nothing says which volume is staged at ${deviceMountPath}: neither vol_data.json nor PersistentVolume ${name}`,
    );
  }
  return { driverName: source.driver, volumeHandle: source.volumeHandle };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
