/** How much room a CSI volume has, and whether it is well. Source: docs/behaviour/csi-plugin.md 12, "Metrics". */
import { NodeServiceCapability_RPC_Type, VolumeUsage_Unit } from "@longshore/csi";
import type { Pod } from "@longshore/kube";
import type { VolumeStats, VolumeUsage } from "../../framework/volume-plugin.ts";
import { isBlockSpec, specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { blockPublishPath, blockStagingPath } from "./csi-block-paths.ts";
import { nodeCapabilities, withDriver } from "./csi-client.ts";
import type { CsiNodeContext } from "./csi-node-context.ts";
import { csiPodVolume } from "./csi-pod-volume.ts";

interface DriverUsage {
  readonly unit: VolumeUsage_Unit;
  readonly total: bigint;
  readonly available: bigint;
  readonly used: bigint;
}

/**
 * Of a block volume the driver need say no more than the total, and nothing else is taken: where it says no more, the rest reads as 0.
 * @returns undefined for a driver without GET_VOLUME_STATS
 */
export function csiNodeStats(
  context: CsiNodeContext,
  { spec, pod }: { readonly spec: VolumeSpec; readonly pod: Pod },
  where: { readonly path: string; readonly deviceMountPath: string },
  signal: AbortSignal,
): Promise<VolumeStats | undefined> {
  const { driver, volumeHandle } = csiPodVolume(spec, pod);
  const isBlock = isBlockSpec(spec);
  const { path, deviceMountPath } = isBlock ? placesOfBlock(context.kubelet.rootDir, { spec, pod }) : where;
  return withDriver(context, { driver, spec }, signal, async (calls) => {
    const capabilities = await nodeCapabilities(calls);
    if (!capabilities.has(NodeServiceCapability_RPC_Type.GET_VOLUME_STATS)) return undefined;
    const { usage, volumeCondition } = await calls.node.nodeGetVolumeStats(
      { volumeId: volumeHandle, volumePath: path, stagingTargetPath: deviceMountPath },
      calls.options,
    );
    const hasCondition = capabilities.has(NodeServiceCapability_RPC_Type.VOLUME_CONDITION);
    const bytes = usageOf(usage, VolumeUsage_Unit.BYTES);
    const inodes = isBlock ? undefined : usageOf(usage, VolumeUsage_Unit.INODES);
    return {
      ...(bytes !== undefined && { bytes: isBlock ? { total: bytes.total } : bytes }),
      ...(inodes !== undefined && { inodes }),
      ...(hasCondition &&
        volumeCondition !== undefined && {
          condition: { abnormal: volumeCondition.abnormal, message: volumeCondition.message },
        }),
    };
  });
}

/** Where the driver has put the volume itself: what pods have is bound from there. */
function placesOfBlock(rootDir: string, { spec, pod }: { readonly spec: VolumeSpec; readonly pod: Pod }) {
  const volumeName = specName(spec);
  return {
    path: blockPublishPath(rootDir, volumeName, pod.metadata?.uid ?? ""),
    deviceMountPath: blockStagingPath(rootDir, volumeName),
  };
}

/** Undefined where the driver says nothing, or something that cannot be. */
function usageOf(usage: readonly DriverUsage[], unit: VolumeUsage_Unit): VolumeUsage | undefined {
  const found = usage.find((one) => one.unit === unit);
  if (found === undefined) return undefined;
  const { total, available, used } = found;
  if (total < 0n || available < 0n || used < 0n) return undefined;
  return { total: Number(total), available: Number(available), used: Number(used) };
}
