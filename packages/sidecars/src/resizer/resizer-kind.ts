/** What a driver can do about the size of its volumes. Source: sidecars.md §4. */
import { type CsiCallOptions, NodeServiceCapability_RPC_Type as NodeRpc } from "@longshore/csi";
import type { Driver } from "../common/env.ts";
import { UnsupportedByDriverError } from "../common/unsupported.ts";

/** `csi`: the controller expands; `trivial`: only nodes do, the controller just says so. */
export type ResizerKind = "csi" | "trivial";

/**
 * Asks the driver, the node service only where the controller cannot expand.
 * @throws UnsupportedByDriverError where neither can
 */
export async function resizerKindOf(
  { name, capabilities, csi }: Driver,
  options: CsiCallOptions,
): Promise<ResizerKind> {
  if (!capabilities.plugin.has("CONTROLLER_SERVICE")) {
    throw new UnsupportedByDriverError(`driver ${name} has no controller service: it needs no resizer`);
  }
  if (capabilities.controller.has("EXPAND_VOLUME")) return "csi";
  const answer = await csi.node.nodeGetCapabilities({}, options);
  const rpcs = answer.capabilities.map(({ type }) => (type.case === "rpc" ? type.value.type : undefined));
  if (rpcs.includes(NodeRpc.EXPAND_VOLUME)) return "trivial";
  throw new UnsupportedByDriverError(
    `driver ${name} expands volumes neither in its controller nor on nodes (EXPAND_VOLUME): it needs no resizer`,
  );
}
