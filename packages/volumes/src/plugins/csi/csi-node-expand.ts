/** Growing what is on a CSI volume. Source: docs/behaviour/csi-plugin.md 11. */
import { CsiCallError, NodeServiceCapability_RPC_Type } from "@longshore/csi";
import { mountOptionsOf } from "../../framework/mount-options.ts";
import { FailedPreconditionError } from "../../framework/node-error-kind.ts";
import type { NodeExpandOptions } from "../../framework/volume-plugin.ts";
import { isBlockSpec, specName } from "../../framework/volume-spec.ts";
import { blockPublishPathOfLink, blockStagingPath } from "./csi-block-paths.ts";
import {
  blockCapability,
  mountCapability,
  type NodeCapabilities,
  nodeCapabilities,
  withDriver,
} from "./csi-client.ts";
import { type CsiNodeContext, CsiSpecError, csiVolumeOf } from "./csi-node-context.ts";
import { secretsOf } from "./csi-node-requests.ts";

/** @returns false: the driver stages nothing, so that it can grow the volume only once it is published */
export function csiNodeExpand(
  context: CsiNodeContext,
  options: NodeExpandOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const { spec, phase, newSizeBytes } = options;
  const { pv, source } = csiVolumeOf(spec);
  return withDriver(context, { driver: source.driver, spec }, signal, async (calls) => {
    const capabilities = await nodeCapabilities(calls);
    const { volumePath, stagingPath, volumeCapability } = asUsed(context, options, capabilities);
    if (!capabilities.has(NodeServiceCapability_RPC_Type.EXPAND_VOLUME)) {
      throw new CsiSpecError(
        `PersistentVolume ${pv.metadata?.name}: its file system must grow on the node, but driver ${source.driver} has no NodeExpandVolume`,
      );
    }
    const stages = capabilities.has(NodeServiceCapability_RPC_Type.STAGE_UNSTAGE_VOLUME);
    if (!stages && phase === "staged") return false;
    const secrets = await secretsOf(context, source.nodeExpandSecretRef, calls.options.signal);
    try {
      await calls.node.nodeExpandVolume(
        {
          volumeId: source.volumeHandle,
          volumePath,
          capacityRange: { requiredBytes: newSizeBytes },
          stagingTargetPath: stages ? stagingPath : "",
          volumeCapability,
          secrets,
        },
        calls.options,
      );
    } catch (error) {
      if (!(error instanceof CsiCallError) || error.code !== "FAILED_PRECONDITION") throw error;
      throw new FailedPreconditionError(`volume ${source.volumeHandle} cannot grow while it is in use`, {
        cause: error,
      });
    }
    return true;
  });
}

/** Where the volume is published and staged, and as what. */
function asUsed(
  { kubelet }: CsiNodeContext,
  { spec, path, deviceMountPath }: NodeExpandOptions,
  capabilities: NodeCapabilities,
) {
  const { pv, source } = csiVolumeOf(spec);
  const access = { accessModes: pv.spec?.accessModes, capabilities };
  if (!isBlockSpec(spec)) {
    const mount = { fsType: source.fsType, mountFlags: mountOptionsOf(pv) };
    const volumeCapability = mountCapability(access, mount);
    return { volumePath: path, stagingPath: deviceMountPath, volumeCapability };
  }
  const { rootDir } = kubelet;
  return {
    volumePath: blockPublishPathOfLink(rootDir, specName(spec), path),
    stagingPath: blockStagingPath(rootDir, specName(spec)),
    volumeCapability: blockCapability(access),
  };
}
