/**
 * The four combinations of gates (docs/behaviour/migration-controllers.md C3), each played with a plugin's volume: it is
 * provisioned, attached, mounted, written, moves to the other node and is deleted. Who did what is read from the disks,
 * the mounts and the drivers' calls.
 */
import { resources } from "@longshore/kube";
import { clusterPlugin, initialGates, type PluginName } from "@longshore/local";
import { VirtualClock } from "@longshore/runtime";
import { pathOfMount, type VolumePath } from "../contract-watch.ts";
import type { SkewMode } from "./stall.ts";
import { VolumeUsers } from "./volume-users.ts";
import { createWatchedCluster, type WatchedCluster } from "./watched-cluster.ts";

/** One combination with one plugin. */
export interface Combination {
  readonly plugin: PluginName;
  readonly controllerManager: boolean;
  readonly kubelet: boolean;
  readonly mode: SkewMode;
}

/** Who served the volume. `nothing`: the pod waits for it. */
export interface CombinationOutcome {
  /** The pod ran on the first node, and another found there all that it had written on the second. */
  readonly isServed: boolean;
  readonly provisioned: VolumePath;
  /** `nothing`, too, where the provider attaches nothing, as with shares of files. */
  readonly attached: VolumePath | "nothing";
  readonly mounted: VolumePath | "nothing";
  /** Whether a driver was called for more than who it is. */
  readonly callsDriver: boolean;
  /** What the pod's user sees, where it is not served. */
  readonly warning?: string;
  readonly violations: readonly string[];
}

/** All combinations of a plugin. */
export function combinationsOf(plugin: PluginName, mode: SkewMode): readonly Combination[] {
  return [true, false].flatMap((controllerManager) =>
    [true, false].map((kubelet) => ({ plugin, controllerManager, kubelet, mode })),
  );
}

/** What the design says of the combination, and for the one that it leaves open, this project: who serves the volume. */
export function expectedPath({
  plugin,
  controllerManager,
  kubelet,
  mode,
}: Combination): VolumePath | "nothing" {
  if (!kubelet) return "in-tree";
  if (controllerManager || mode === "node-only") return "csi";
  // No controller attaches such a volume, so none refuses to.
  return clusterPlugin(plugin).csiDriver?.attachRequired === false ? "csi" : "nothing";
}

const nodes = ["node-1", "node-2"] as const;
const pollMs = 100;
/** Longer than any volume takes that is served, in virtual milliseconds. */
const patienceMs = 60_000;

/** Plays the combination. */
export function playCombination(combination: Combination): Promise<CombinationOutcome> {
  const clock = new VirtualClock();
  return clock.run(new CombinationPlay(clock, combination).play());
}

class CombinationPlay {
  readonly #clock: VirtualClock;
  readonly #combination: Combination;
  readonly #signal = new AbortController().signal;
  readonly #losses: string[] = [];
  readonly #mounted = new Set<VolumePath>();

  constructor(clock: VirtualClock, combination: Combination) {
    this.#clock = clock;
    this.#combination = combination;
  }

  async play(): Promise<CombinationOutcome> {
    const { plugin, controllerManager, kubelet, mode } = this.#combination;
    const { gate } = clusterPlugin(plugin);
    const users = new VolumeUsers(this.#clock, (what) => this.#losses.push(`C3: ${what}`));
    const watched = await createWatchedCluster(this.#clock, {
      plugins: [plugin],
      nodes: nodes.length,
      nodeDecides: mode === "node-only",
      gates: { ...initialGates, [gate]: kubelet },
      programs: (host) => users.programs(host),
    });
    const { cluster, watch } = watched;
    await cluster.platform.setControlPlaneGates({ [gate]: controllerManager }, this.#signal);
    const claim = "data";
    await users.createClaim(cluster, plugin, claim);
    let isServed = true;
    let warning: string | undefined;
    for (const node of nodes) {
      const name = `user-of-${node}`;
      await users.createPod(cluster, { name, plugin, claim, node });
      const runs = await this.#within(() => podOf(watched, name)?.status?.phase === "Running");
      isServed &&= runs;
      if (!runs) warning ??= warningOf(watched, name);
      await users.writeAll();
      for (const path of cluster.hostOf(node).mountsBelow("/n").map(pathOfMount)) this.#mounted.add(path);
      const pv = cluster.objects(resources.persistentVolumes)[0]?.metadata.name;
      await users.deletePod(cluster, name);
      const left = () => podOf(watched, name) === undefined && !watched.isInUse(pv, node);
      if (!(await this.#within(left))) watch.report("C8", `${name} does not leave ${node}`);
    }
    const provisioned = (await cluster.cloud.calls(0, this.#signal)).find(
      ({ op }) => op === "createDisk",
    )?.path;
    await users.deleteClaim(cluster, claim);
    const isGone = await this.#within(() => cluster.cloud.disks().length === 0);
    if (!isGone) watch.report("C8", `the disk of ${claim} stays`);
    await cluster.stop();
    return {
      isServed,
      provisioned: provisioned ?? "in-tree",
      attached: onlyOne(watched.effects.filter(({ op }) => op === "attach").map(({ path }) => path)),
      mounted: onlyOne([...this.#mounted]),
      callsDriver: [...watched.driverCalls].some((call) => isWork(call)),
      ...(warning === undefined ? {} : { warning }),
      violations: [...watch.violations, ...this.#losses],
    };
  }

  async #within(holds: () => boolean): Promise<boolean> {
    const untilMs = this.#clock.monotonicMs() + patienceMs;
    while (!holds()) {
      if (this.#clock.monotonicMs() > untilMs) return false;
      await this.#clock.sleep(pollMs, this.#signal);
    }
    return true;
  }
}

/** Calls that attach, mount or look after a mounted volume; the rest is how driver and sidecars get to know each other. */
function isWork(call: string): boolean {
  return /Controller(Publish|Unpublish)Volume|Node(Stage|Unstage|Publish|Unpublish)Volume$/.test(call);
}

function podOf({ cluster }: WatchedCluster, name: string) {
  return cluster.objects(resources.pods).find(({ metadata }) => metadata.name === name);
}

function warningOf({ cluster }: WatchedCluster, name: string): string | undefined {
  return cluster
    .objects(resources.events)
    .find(({ reason, involvedObject }) => reason === "FailedAttachVolume" && involvedObject.name === name)
    ?.message;
}

/** The one path that was taken; `nothing` for none. @throws Error for both */
function onlyOne(paths: readonly VolumePath[]): VolumePath | "nothing" {
  const [path, ...others] = new Set(paths);
  if (others.length > 0) throw new Error("a volume was served by both paths");
  return path ?? "nothing";
}
