/** What a driver can do about the size of its volumes. Source: docs/behaviour/sidecars.md 4. */
import {
  CsiCallError,
  type CsiCallOptions,
  type CsiConnection,
  NodeServiceCapability_RPC_Type as NodeRpc,
} from "@longshore/csi";
import type { Driver } from "../common/sidecar-env.ts";
import { UnsupportedByDriverError } from "../common/unsupported-by-driver-error.ts";

/** `csi`: the controller expands; `trivial`: only nodes do, the controller just says so; `none`: it modifies only. */
export type ResizerKind = "csi" | "trivial" | "none";

/**
 * Asks the driver, the node service only where the controller cannot expand.
 * @throws UnsupportedByDriverError where neither can, nor can the volumes be modified
 */
export async function resizerKindOf(
  { name, capabilities, csi }: Driver,
  options: CsiCallOptions,
): Promise<ResizerKind> {
  if (!capabilities.plugin.has("CONTROLLER_SERVICE")) {
    throw new UnsupportedByDriverError(`driver ${name} has no controller service: it needs no resizer`);
  }
  if (capabilities.controller.has("EXPAND_VOLUME")) return "csi";
  if ((await nodeRpcs(csi, options)).includes(NodeRpc.EXPAND_VOLUME)) return "trivial";
  if (capabilities.controller.has("MODIFY_VOLUME")) return "none";
  throw new UnsupportedByDriverError(
    `driver ${name} expands volumes neither in its controller nor on nodes (EXPAND_VOLUME): it needs no resizer`,
  );
}

/** The RPCs of the driver's node service; empty when its controller endpoint serves no node service. */
async function nodeRpcs(
  csi: CsiConnection,
  options: CsiCallOptions,
): Promise<readonly (NodeRpc | undefined)[]> {
  try {
    const { capabilities } = await csi.node.nodeGetCapabilities({}, options);
    return capabilities.map(({ type }) => (type.case === "rpc" ? type.value.type : undefined));
  } catch (error) {
    if (error instanceof CsiCallError && error.answered && error.code === "UNIMPLEMENTED") return [];
    throw error;
  }
}
