/** The demo on a cluster of processes, brought up for it and taken down after it. */
import type { CrossingEvent } from "@longshore/migration";
import { observedCluster } from "../cluster/observed-cluster.ts";
import { type ClusterEnv, type SupervisedCluster, upCluster } from "../cluster/process-cluster.ts";
import { clusterConfig, defaultPlugins } from "../layout/cluster-config.ts";
import type { PluginName } from "../layout/plugins.ts";
import { readerCommand, writerCommand } from "../records/process-programs.ts";
import { type DemoCluster, runDemo } from "./demo.ts";
import type { DemoReport } from "./demo-report.ts";

/** Options of {@link runProcessDemo}. */
export interface ProcessDemoOptions {
  readonly dir: string;
  /** The plugins of the cluster, which are carried one after the other; default {@link defaultPlugins}. */
  readonly plugins?: readonly PluginName[];
  readonly hostForm: "kernel" | "unprivileged";
  /** Program and first arguments of the longshore command. */
  readonly command: readonly string[];
  readonly onStatus?: (text: string) => void;
  readonly onStep?: (name: string, ms: number) => void;
  readonly onCrossing?: (event: CrossingEvent) => void;
}

const nodeCount = 3;
/** With several plugins each has fewer writers, which write less often: they share the machine. */
const rush = { alone: { replicas: nodeCount }, beside: { replicas: 1, writeEveryMs: 100 } } as const;
/** The smallest volume of the in-tree plugin; as a disk it takes all of it at once. */
const volumeBytes = 2 ** 30;

/** Runs the demo; the cluster and everything it has made is gone afterwards, whatever happens. */
export async function runProcessDemo(
  env: ClusterEnv,
  options: ProcessDemoOptions,
  signal: AbortSignal,
): Promise<DemoReport> {
  const startMs = env.clock.monotonicMs();
  const plugins = options.plugins ?? defaultPlugins;
  const { replicas, writeEveryMs }: { replicas: number; writeEveryMs?: number } =
    plugins.length === 1 ? rush.alone : rush.beside;
  const cluster = await upCluster(env, {
    dir: options.dir,
    config: clusterConfig(nodeCount, options.hostForm, { plugins }),
    diskBytes: options.hostForm === "kernel" ? plugins.length * replicas * volumeBytes : 0,
    command: options.command,
    signal,
    ...(options.onStatus === undefined ? {} : { onProgress: options.onStatus }),
  });
  try {
    const name = "bring the cluster up";
    const ms = Math.round(env.clock.monotonicMs() - startMs);
    options.onStep?.(name, ms);
    const { dir: _dir, hostForm: _form, command: _command, plugins: _plugins, ...listeners } = options;
    return await runDemo(
      env,
      demoClusterOf(env, cluster),
      {
        plugins,
        replicas,
        writerCommand: writerCommand(writeEveryMs),
        readerCommand,
        stepsBefore: [{ name, ms }],
        ...listeners,
      },
      signal,
    );
  } finally {
    options.onStatus?.("taking the cluster down");
    await cluster.remove();
  }
}

function demoClusterOf(env: ClusterEnv, cluster: SupervisedCluster): DemoCluster {
  return {
    ...observedCluster(env, cluster),
    async cloudAttachments(signal) {
      const disks = await Promise.all(
        cluster.config.plugins.map((provider) => cluster.cloudOf(provider).listDisks(signal)),
      );
      return disks.flat().reduce((sum, disk) => sum + disk.attachments.length, 0);
    },
  };
}
