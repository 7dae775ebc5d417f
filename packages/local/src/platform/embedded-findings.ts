/**
 * Problems of a local cluster's own processes that block a crossing: a disk cloud or a driver that does not
 * answer or says that it is not ready, and processes that end again and again.
 */
import type { CsiConnector } from "@longshore/csi";
import type { Finding, Wait } from "@longshore/migration";
import type { DiskCloudClient } from "@longshore/reference-driver";
import { type Clock, errorChain, withDeadline } from "@longshore/runtime";
import { kubeletPaths } from "@longshore/volumes";
import { type ClusterConfig, controllerDriverNames, driverNames } from "../layout/cluster-config.ts";
import type { ClusterLayout } from "../layout/cluster-layout.ts";

/** A process of the cluster. */
export interface ProcessFacts {
  readonly name: string;
  readonly restarts: number;
  readonly alive: boolean;
  /** How long it has run, in milliseconds; undefined where that is not known. */
  readonly ageMs: number | undefined;
}

/** What the look needs. */
export interface EmbeddedFindingsEnv {
  readonly clock: Clock;
  readonly connector: CsiConnector;
  readonly cloud: DiskCloudClient;
  /** The cluster's processes now. */
  readonly processes: () => Promise<readonly ProcessFacts[]>;
  /** Names of the Node objects: the driver of a node that was deleted, since it is lost, is not asked. */
  readonly nodeNames: (signal: AbortSignal) => Promise<readonly string[]>;
}

/** A process that was just restarted gets this long to answer, in milliseconds. */
const answersWithinMs = 10_000;
const callMs = 2000;
const pollMs = 200;
/** What a crossing itself restarts: to have been started again says nothing of these. */
const crossingRestarts = /^(controller-manager$|node-agent-)/;
/** A process that has run so long, in milliseconds, is considered stable. */
const steadyMs = 60_000;

/** Asks the disk cloud and the drivers, on every node, for a sign of life. */
export async function embeddedFindings(
  env: EmbeddedFindingsEnv,
  cluster: { readonly layout: ClusterLayout; readonly config: ClusterConfig },
  signal: AbortSignal,
  onWaiting: (wait: Wait) => void = () => {},
): Promise<Finding[]> {
  const { layout, config } = cluster;
  const silent = new Map<string, string>();
  const answers = (object: string, process: string, ask: (within: AbortSignal) => Promise<unknown>) =>
    answered(env.clock, { object, logFile: layout.logFile(process) }, signal, ask, (why) => {
      silent.set(object, why);
      onWaiting({ subjects: [...silent].map(([kind, reason]) => ({ kind, name: "", why: reason })) });
    }).finally(() => silent.delete(object));
  const driver = (object: string, socket: string, process: string) =>
    answers(object, process, (deadline) => probe(env, socket, deadline));
  const names = new Set(await env.nodeNames(signal));
  const nodes = config.nodes.filter(({ name }) => names.has(name));
  const found = await Promise.all([
    answers("the disk cloud", "disk-cloud", (deadline) => env.cloud.listInstances(deadline)),
    ...controllerDriverNames(config).map((name) =>
      driver(`the controller of ${name}`, layout.driverSocket(name), "csi-controller"),
    ),
    ...driverNames(config).flatMap((name) =>
      nodes.map((node) =>
        driver(
          `the driver ${name} on ${node.name}`,
          kubeletPaths.csiSocket(layout.nodeDir(node.name), name),
          `csi-node-${node.name}`,
        ),
      ),
    ),
  ]);
  return [
    ...found.filter((finding) => finding !== undefined),
    ...(await env.processes()).flatMap((process) => restartFinding(process, layout) ?? []),
  ];
}

/** A process that had to be started again and has not run for long since may well end again. */
export function restartFinding(process: ProcessFacts, layout: ClusterLayout): Finding | undefined {
  const { name, restarts, alive, ageMs } = process;
  if (crossingRestarts.test(name)) return undefined;
  if (alive && (restarts === 0 || ageMs === undefined || ageMs >= steadyMs)) return undefined;
  const times = restarts === 1 ? "once" : `${restarts} times`;
  return {
    severity: "warning",
    object: `process ${name}`,
    reason: alive
      ? `it was started again ${times}, the last time ${Math.round((ageMs ?? 0) / 1000)} s ago`
      : `it is down just now${restarts === 0 ? "" : `, and was started again ${times} before`}`,
    remedy: `see in ${layout.logFile(name)} why it ended${alive ? "; it may end again" : ", and bring it back"}`,
  };
}

class DriverNotReadyError extends Error {
  override readonly name = "DriverNotReadyError";
}

async function probe(env: EmbeddedFindingsEnv, socket: string, signal: AbortSignal): Promise<void> {
  const connection = env.connector.connect(socket);
  try {
    const { ready } = await connection.identity.probe({}, { signal, timeoutMs: callMs });
    if (ready === false) throw new DriverNotReadyError("its Probe answers that it is not ready");
  } finally {
    connection.close();
  }
}

async function answered(
  clock: Clock,
  { object, logFile }: { readonly object: string; readonly logFile: string },
  parent: AbortSignal,
  ask: (signal: AbortSignal) => Promise<unknown>,
  onSilent: (why: string) => void,
): Promise<Finding | undefined> {
  const startMs = clock.monotonicMs();
  for (;;) {
    let reason: string;
    try {
      await withDeadline(clock, callMs, parent, ask);
      return undefined;
    } catch (error) {
      if (parent.aborted) throw parent.reason;
      const isUnready = error instanceof DriverNotReadyError;
      reason = isUnready ? error.message : `it does not answer (${errorChain(error)})`;
    }
    if (clock.monotonicMs() - startMs >= answersWithinMs) {
      const remedy = `see why in ${logFile} and bring it back`;
      return { severity: "blocker", object, reason, remedy };
    }
    onSilent(reason);
    await clock.sleep(pollMs, parent);
  }
}
