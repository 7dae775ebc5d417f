/** The qualification on a cluster of processes, brought up for it and taken down after it. */
import { crossingSubject } from "@longshore/migration";
import { agentProcess, nodeDriverProcess, signalClusterProcess } from "../cluster/cluster-processes.ts";
import { observedCluster } from "../cluster/observed-cluster.ts";
import { type ClusterEnv, type SupervisedCluster, upCluster } from "../cluster/process-cluster.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { readDriverCalls } from "../layout/driver-calls.ts";
import { controllerPlace } from "../layout/driver-command.ts";
import { pluginsNamed } from "../layout/plugins.ts";
import { requireDriverCommand } from "../processes/machine.ts";
import { deviceReaderCommand, deviceWriterCommand } from "../records/process-device-programs.ts";
import { readerCommand, writerCommand } from "../records/process-programs.ts";
import type { QualificationReport } from "./qualification-report.ts";
import {
  type QualificationCluster,
  type QualificationOptions,
  runQualification,
} from "./run-qualification.ts";

/** Options of {@link runProcessQualification}. */
export interface ProcessQualificationOptions
  extends Pick<QualificationOptions, "plugin" | "behaviourTimeoutMs" | "skip" | "onResult" | "onStatus"> {
  readonly dir: string;
  readonly hostForm: "kernel" | "unprivileged";
  /** Program and first arguments of the longshore command. */
  readonly command: readonly string[];
  /** Program and arguments of the driver, with placeholders; the reference driver when left out. */
  readonly driverCommand?: readonly string[];
}

const nodeCount = 3;

/**
 * Runs the qualification; the cluster and everything it has made is gone afterwards, whatever happens.
 * @throws UnknownPluginError or DriverCommandError before anything is started
 */
export async function runProcessQualification(
  env: ClusterEnv,
  options: ProcessQualificationOptions,
  signal: AbortSignal,
): Promise<QualificationReport> {
  const { dir, hostForm, command, driverCommand: asked, ...rest } = options;
  const { driverName } = crossingSubject(options.plugin);
  const plugins = pluginsNamed([options.plugin]);
  const driverCommand = asked === undefined ? undefined : requireDriverCommand(asked);
  options.onStatus?.("bringing a cluster up");
  const cluster = await upCluster(env, {
    dir,
    config: clusterConfig(nodeCount, hostForm, {
      plugins,
      recordsDriverCalls: true,
      ...(driverCommand === undefined ? {} : { ownDriver: { name: driverName, command: driverCommand } }),
    }),
    command,
    signal,
    ...(options.onStatus === undefined ? {} : { onProgress: options.onStatus }),
  });
  try {
    return await runQualification(
      env,
      qualificationClusterOf(env, cluster),
      {
        ...rest,
        writerCommand: writerCommand(),
        readerCommand,
        deviceWriterCommand: deviceWriterCommand(),
        deviceReaderCommand: deviceReaderCommand(),
      },
      signal,
    );
  } finally {
    options.onStatus?.("taking the cluster down");
    await cluster.remove();
  }
}

function qualificationClusterOf(env: ClusterEnv, cluster: SupervisedCluster): QualificationCluster {
  const { config, layout } = cluster;
  const places = [controllerPlace, ...config.nodes.map(({ name }) => name)];
  return {
    ...observedCluster(env, cluster),
    driverCalls: () => readDriverCalls(env.host, places.map(layout.driverCallsFile)),
    async restartNode(nodeName) {
      // Killed, not ended: nothing of them gets to put in order what is mounted. The supervisor starts them again.
      for (const process of [agentProcess(nodeName), nodeDriverProcess(nodeName)]) {
        await signalClusterProcess(env.host, layout, process, "SIGKILL");
      }
    },
  };
}
