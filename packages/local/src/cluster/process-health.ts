/** What is wrong with the processes of a cluster, as seen from outside: it needs no answer of any of them. */
import type { Host } from "@longshore/runtime";
import type { ClusterConfig } from "../layout/cluster-config.ts";
import type { ClusterLayout } from "../layout/cluster-layout.ts";
import { ownDriverPlaces } from "../layout/driver-command.ts";
import { supervisorName } from "./cleanup.ts";
import type { ProcessStatus } from "./cluster-processes.ts";
import { fullBelowBytes } from "./cluster-start-error.ts";

/** The state of a cluster's processes. */
export interface ProcessHealth {
  /** True while the supervisor runs, which starts what has ended again. */
  readonly isSupervised: boolean;
  /** Processes that have ended and are to be started again. */
  readonly waiting: readonly string[];
  /** Set when the disk that holds the cluster is full: nothing can be written, nor started, before it has room. */
  readonly fullDisk?: string;
}

/** Holds the processes that run against those that there should be. */
export async function processHealth(
  host: Host,
  layout: ClusterLayout,
  config: ClusterConfig,
  present: readonly ProcessStatus[],
): Promise<ProcessHealth> {
  const alive = new Set(present.filter((process) => process.alive).map(({ name }) => name));
  const { availableBytes } = await host.usage(layout.dir);
  return {
    isSupervised: alive.has(supervisorName),
    waiting: namesOf(config).filter((name) => !alive.has(name)),
    ...(availableBytes < fullBelowBytes
      ? {
          fullDisk: `the disk that holds ${layout.dir} is full: make room there, and what has ended starts again by itself`,
        }
      : {}),
  };
}

/** The processes that the supervisor keeps running, but for itself. */
function namesOf(config: ClusterConfig): readonly string[] {
  return [
    "apiserver",
    "disk-cloud",
    "controller-manager",
    "csi-controller",
    ...config.nodes.flatMap(({ name }) => [`csi-node-${name}`, `node-agent-${name}`]),
    ...ownDriverPlaces(config).map((place) => `driver-${place}`),
  ];
}
