/** What of a local cluster's own processes stands in the way of a crossing: a disk cloud or a driver that does not answer. */
import type { CsiConnector } from "@longshore/csi";
import type { Blocker } from "@longshore/migration";
import { type Clock, errorChain, withDeadline } from "@longshore/runtime";
import { kubeletPaths } from "@longshore/volumes";
import type { ClusterConfig } from "../cluster/config.ts";
import type { ClusterLayout } from "../cluster/layout.ts";
import type { DiskCloudClient } from "../disk-cloud/index.ts";

/** What the look needs. */
export interface EmbeddedBlockersEnv {
  readonly clock: Clock;
  readonly connector: CsiConnector;
  readonly cloud: DiskCloudClient;
}

/** A process that was just restarted gets this long to answer, in milliseconds. */
const answersWithinMs = 10_000;
const callMs = 2000;
const pollMs = 200;

/** Asks the disk cloud and the driver, on every node, for a sign of life. */
export async function embeddedBlockers(
  env: EmbeddedBlockersEnv,
  cluster: { readonly layout: ClusterLayout; readonly config: ClusterConfig },
  signal: AbortSignal,
): Promise<Blocker[]> {
  const { layout, config } = cluster;
  const driver = (object: string, socket: string, process: string) =>
    answers(env.clock, object, layout.logFile(process), signal, (deadline) => probe(env, socket, deadline));
  const found = await Promise.all([
    answers(env.clock, "the disk cloud", layout.logFile("disk-cloud"), signal, (deadline) =>
      env.cloud.listInstances(deadline),
    ),
    driver(`the controller of ${config.driverName}`, layout.driverSocket, "csi-controller"),
    ...config.nodes.map(({ name }) =>
      driver(
        `the driver ${config.driverName} on ${name}`,
        kubeletPaths.csiSocket(layout.nodeDir(name), config.driverName),
        `csi-node-${name}`,
      ),
    ),
  ]);
  return found.filter((blocker) => blocker !== undefined);
}

async function probe(env: EmbeddedBlockersEnv, socket: string, signal: AbortSignal): Promise<void> {
  const connection = env.connector.connect(socket);
  try {
    await connection.identity.probe({}, { signal, timeoutMs: callMs });
  } finally {
    connection.close();
  }
}

async function answers(
  clock: Clock,
  object: string,
  logFile: string,
  parent: AbortSignal,
  ask: (signal: AbortSignal) => Promise<unknown>,
): Promise<Blocker | undefined> {
  const startMs = clock.monotonicMs();
  for (;;) {
    try {
      await withDeadline(clock, callMs, parent, ask);
      return undefined;
    } catch (error) {
      if (parent.aborted) throw parent.reason;
      if (clock.monotonicMs() - startMs >= answersWithinMs) {
        return {
          object,
          reason: `it does not answer (${errorChain(error)})`,
          remedy: `see why in ${logFile} and bring it back`,
        };
      }
    }
    await clock.sleep(pollMs, parent);
  }
}
