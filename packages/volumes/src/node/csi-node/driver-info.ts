/** What a driver says of itself and this node. */
import type { CsiConnector } from "@longshore/csi";
import { type RuntimeEnv, withDeadline } from "@longshore/runtime";

const nodeGetInfoTimeoutMs = 120_000;

/** A driver as NodeGetInfo describes it. */
export interface DriverInfo {
  readonly nodeID: string;
  /** Most volumes of the driver on this node; 0: not said. */
  readonly maxVolumes: bigint;
  readonly topology: Readonly<Record<string, string>>;
}

/** Calls NodeGetInfo of the driver at the socket. */
export function readDriverInfo(
  env: Pick<RuntimeEnv, "clock"> & { readonly connector: CsiConnector },
  endpoint: string,
  signal: AbortSignal,
): Promise<DriverInfo> {
  return withDeadline(env.clock, nodeGetInfoTimeoutMs, signal, async (callSignal) => {
    const connection = env.connector.connect(endpoint);
    try {
      const answer = await connection.node.nodeGetInfo(
        {},
        { signal: callSignal, timeoutMs: nodeGetInfoTimeoutMs },
      );
      return {
        nodeID: answer.nodeId,
        maxVolumes: answer.maxVolumesPerNode,
        topology: { ...answer.accessibleTopology?.segments },
      };
    } finally {
      connection.close();
    }
  });
}
