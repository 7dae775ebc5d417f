/** A cluster in this process under the virtual clock, on which pods run whose programs wait, and whose files are looked at. */
import { type Pod, resources, type Stored } from "@longshore/kube";
import {
  type Logger,
  noMeter,
  SeededRandom,
  type SimulatedHost,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import {
  createInProcessCluster,
  type InProcessCluster,
  type InProcessClusterOptions,
} from "../cluster/in-process-cluster.ts";
import type { ContainerConfig } from "../containers/pod-runtime.ts";
import { type ClusterConfig, clusterConfig } from "../layout/cluster-config.ts";

const signal = new AbortController().signal;
const namespace = "default";

/** The cluster and what tests of volumes ask of it. */
export interface PodVolumesCluster {
  readonly clock: VirtualClock;
  readonly cluster: InProcessCluster;
  readonly host: SimulatedHost;
  /** What containers were started with, the last of each pod by its name. */
  readonly started: ReadonlyMap<string, ContainerConfig>;
  /** Creates a pod with these volumes and one container that mounts them under their names, unless `mounts` says otherwise. */
  createPod(name: string, spec: PodVolumes): Promise<Stored<Pod>>;
  /** Resolves once the pod runs; the directory that its container sees at `mountPath`. */
  runs(name: string): Promise<(mountPath: string) => string>;
  /** Lets time pass until it holds. */
  until(what: string, holds: () => Promise<boolean>): Promise<void>;
  /** The messages of warnings about the pod. */
  warnings(name: string): Promise<readonly string[]>;
  /** Deletes the pod, and resolves once it is gone. */
  deletePod(name: string): Promise<void>;
}

/** What a pod is to have. */
export interface PodVolumes {
  readonly volumes: NonNullable<NonNullable<Pod["spec"]>["volumes"]>;
  readonly mounts?: NonNullable<Pod["spec"]>["containers"][number]["volumeMounts"];
  readonly container?: Partial<NonNullable<Pod["spec"]>["containers"][number]>;
  readonly spec?: Partial<NonNullable<Pod["spec"]>>;
  readonly metadata?: Pod["metadata"];
}

/** What the cluster is to be like. */
export interface PodVolumesClusterOptions
  extends Pick<Partial<ClusterConfig>, "plugins" | "withoutInTreePlugins" | "nodeDecidesMigration"> {
  /** One, unless it is said. */
  readonly nodes?: number;
  readonly isolate?: InProcessClusterOptions["isolate"];
  readonly gates?: InProcessClusterOptions["gates"];
  /** Silent, unless it is said. */
  readonly logger?: Logger;
}

/** Runs the test on a cluster; virtual time runs meanwhile. */
export async function onPodVolumesCluster(
  test: (world: PodVolumesCluster) => Promise<void>,
  { nodes = 1, isolate, gates, logger = silentLogger, ...options }: PodVolumesClusterOptions = {},
): Promise<void> {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger, meter: noMeter };
  await clock.run(
    (async () => {
      const config = clusterConfig(nodes, "unprivileged", options);
      const started = new Map<string, ContainerConfig>();
      const cluster = await createInProcessCluster(env, {
        config,
        ...(isolate === undefined ? {} : { isolate }),
        ...(gates === undefined ? {} : { gates }),
        programs: () => ({
          wait: async ({ sandbox, signal: ended }) => {
            started.set(sandbox.podName, sandbox);
            await clock.sleep(2 ** 31, ended);
            return 0;
          },
        }),
      });
      await test(worldOf(clock, cluster, started));
      await cluster.stop();
    })(),
  );
}

function worldOf(
  clock: VirtualClock,
  cluster: InProcessCluster,
  started: ReadonlyMap<string, ContainerConfig>,
): PodVolumesCluster {
  const { kube } = cluster;
  const until = async (what: string, holds: () => Promise<boolean>) => {
    const untilMs = clock.monotonicMs() + 5 * 60_000;
    while (!(await holds())) {
      if (clock.monotonicMs() > untilMs) throw new Error(`not within 5 min: ${what}`);
      await clock.sleep(100, signal);
    }
  };
  const podOf = (name: string) => kube.get(resources.pods, { namespace, name }, { signal });
  return {
    clock,
    cluster,
    host: cluster.hostOf(cluster.config.nodes[0]?.name ?? ""),
    started,
    until,
    createPod: (name, { volumes, mounts, container, spec, metadata }) => {
      const volumeMounts =
        mounts ?? volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` }));
      return kube.create(
        resources.pods,
        {
          metadata: { ...metadata, name, namespace },
          spec: {
            terminationGracePeriodSeconds: 1,
            ...spec,
            containers: [{ name: "main", image: "host", command: ["wait"], ...container, volumeMounts }],
            volumes,
          },
        },
        { signal },
      );
    },
    async runs(name) {
      await until(`${name} runs`, async () => (await podOf(name))?.status?.phase === "Running");
      await until(`${name} was started`, async () => started.has(name));
      const mounts = started.get(name)?.mounts ?? [];
      return (mountPath) => mounts.find((mount) => mount.mountPath === mountPath)?.hostPath ?? "";
    },
    async warnings(name) {
      const events = await kube.list(resources.events, { namespace, signal });
      return events.items
        .filter(({ type, involvedObject }) => type === "Warning" && involvedObject.name === name)
        .map(({ message = "" }) => message);
    },
    async deletePod(name) {
      await kube.delete(resources.pods, { namespace, name }, { signal });
      await until(`${name} is gone`, async () => (await podOf(name)) === undefined);
    },
  };
}
