/**
 * A cluster without faults on the virtual clock, with the contract checked after every call at a seam, against the
 * disks, the mounts and the stored objects themselves.
 */
import { resources } from "@longshore/kube";
import {
  clusterConfig,
  createInProcessCluster,
  type InProcessCluster,
  inTreeHandle,
  type PluginName,
  type Program,
} from "@longshore/local";
import {
  noMeter,
  type RuntimeEnv,
  SeededRandom,
  type SimulatedHost,
  silentLogger,
  type VirtualClock,
} from "@longshore/runtime";
import type { CloudCaller } from "@longshore/volumes";
import { type AttachmentCall, ContractWatch, diskOf, type VolumePath } from "../contract-watch.ts";
import { type CallGate, Life } from "../cut.ts";
import { FaultDraws } from "../fault-draws.ts";
import { FaultyCloud } from "../faulty-cloud.ts";
import { attachmentCalls, worldOf } from "../world.ts";

/** What the cluster is like. */
export interface WatchedClusterOptions {
  readonly plugins: readonly PluginName[];
  readonly nodes: number;
  /** The attach/detach controller goes by the node's statement alone (docs/behaviour/migration-controllers.md B2). */
  readonly nodeDecides: boolean;
  readonly gates?: Readonly<Record<string, boolean>>;
  readonly programs: (host: SimulatedHost) => Readonly<Record<string, Program>>;
}

/** The cluster and who watches it. */
export interface WatchedCluster {
  readonly cluster: InProcessCluster;
  readonly watch: ContractWatch;
  /** Attaches and detaches in the order in which they took effect. */
  readonly effects: readonly AttachmentCall[];
  /** Names of the drivers with the places at which they were called, a pair for each: `node-1 ebs.csi.aws.com`. */
  readonly driverCalls: Set<string>;
  /** Looks at the world at once. */
  check(): void;
  /** What is attached to the node, and by which path. */
  attachmentsOn(nodeName: string): readonly { readonly plugin: string; readonly path: VolumePath }[];
  /** Whether the disk of the PersistentVolume is attached to the node, or a share of it mounted there. */
  isInUse(volumeName: string | undefined, nodeName: string): boolean;
  /** Whether there is still something of the PersistentVolume: the object, or its disk. */
  exists(volumeName: string): boolean;
}

/** Starts the cluster; all of its nodes are in one zone, so that every volume can move. */
export async function createWatchedCluster(
  clock: VirtualClock,
  options: WatchedClusterOptions,
): Promise<WatchedCluster> {
  const effects: AttachmentCall[] = [];
  const driverCalls = new Set<string>();
  const watch = new ContractWatch((call) => effects.push(call));
  const env: RuntimeEnv = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const { plugins, nodes, nodeDecides, gates, programs } = options;
  const spread = clusterConfig(nodes, "unprivileged", {
    plugins,
    ...(nodeDecides ? { nodeDecidesMigration: true } : {}),
  });
  const config = {
    ...spread,
    nodes: spread.nodes.map((node) => ({ ...node, zone: spread.nodes[0]?.zone ?? "" })),
  };
  let cluster: InProcessCluster | undefined;
  const check = () => {
    if (cluster === undefined) return;
    watch.check(worldOf(cluster));
    for (const violation of cluster.disks.violations) watch.report("C2", violation);
  };
  const cloud = new FaultyCloud({
    clock,
    draws: new FaultDraws(new SeededRandom(1)),
    rates: () => undefined,
    onFault: () => {},
    onEffect: (call) => watch.asked(call),
    onAttached: (call) => cluster && watch.attachAnswered(call, worldOf(cluster)),
  });
  const gate: CallGate = async (_call, proceed) => {
    try {
      return await proceed();
    } finally {
      check();
    }
  };
  cluster = await createInProcessCluster(env, {
    config,
    programs,
    // As a supervisor does: a registrar that the kubelet refuses ends.
    restartsEnded: true,
    ...(gates === undefined ? {} : { gates }),
    onDriverCall: (place, call) => driverCalls.add(`${place} ${call.rpc}`),
    isolate: (name, seams) => {
      const cloudFor = (caller: CloudCaller) =>
        cloud.around(seams.cloudFor(caller), attachmentCalls(config, caller));
      return new Life(name, gate).seams({ ...seams, cloudFor });
    },
  });
  const made = cluster;
  /** Disks by the names of their PersistentVolumes, as far as they were ever looked for. */
  const diskIds = new Map<string, string>();
  const diskIdOf = (volumeName: string) => {
    const known = diskIds.get(volumeName);
    if (known !== undefined) return known;
    const pv = made.objects(resources.persistentVolumes).find(({ metadata }) => metadata.name === volumeName);
    const handle = inTreeHandle(pv?.spec);
    const id = handle === undefined ? undefined : diskOf(handle, worldOf(made));
    if (id !== undefined) diskIds.set(volumeName, id);
    return id;
  };
  return {
    cluster,
    watch,
    effects,
    driverCalls,
    check,
    attachmentsOn(nodeName) {
      const here = worldOf(made).attachments.filter((attachment) => attachment.nodeName === nodeName);
      return here.flatMap(({ diskId }) => watch.attacherOf(diskId, nodeName) ?? []);
    },
    isInUse(volumeName, nodeName) {
      if (volumeName === undefined) return false;
      const isMounted = made
        .hostOf(nodeName)
        .mountsBelow("/n")
        .some(({ target }) => target.includes(volumeName));
      const id = diskIdOf(volumeName);
      return isMounted || worldOf(made).attachments.some((a) => a.diskId === id && a.nodeName === nodeName);
    },
    exists(volumeName) {
      const id = diskIdOf(volumeName);
      const isStored = made
        .objects(resources.persistentVolumes)
        .some((pv) => pv.metadata.name === volumeName);
      return isStored || made.cloud.disks().some((disk) => disk.id === id);
    },
  };
}
