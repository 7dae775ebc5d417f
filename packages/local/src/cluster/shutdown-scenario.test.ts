/** A node shuts down gracefully: the cluster in one process, on the virtual clock, with its components' rights. */
import { type Pod, resources, type Stored } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
// Tests stand outside the floors.
import { type AccessLog, watchedClient } from "@longshore/testing/deployment";
import { expect, it } from "vitest";
import type { Program } from "../containers/program-pod-runtime.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { classNameOf, clusterPlugin } from "../layout/plugins.ts";
import { claimVolume, volumePod } from "../records/volume-pod.ts";
import { createInProcessCluster, type InProcessCluster } from "./in-process-cluster.ts";

const signal = new AbortController().signal;
const nodeName = "node-1";
const ref = (name: string) => ({ namespace: "default", name });

/** A cluster of one node, whose pods take three seconds to end, and what was seen as each of them ended. */
class World {
  readonly clock = new VirtualClock();
  readonly ends: string[] = [];
  #cluster: InProcessCluster | undefined;

  get cluster(): InProcessCluster {
    if (this.#cluster === undefined) throw new Error("the cluster has not started");
    return this.#cluster;
  }

  async run(periods: { readonly total: number; readonly critical: number }, work: () => Promise<void>) {
    const { clock } = this;
    const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
    const log: AccessLog = { asked: new Set(), refused: [] };
    const serve: Program = async ({ args: [name = ""], signal: ended }) => {
      await clock.sleep(86_400_000, ended).catch(() => {});
      await clock.sleep(3000, signal);
      this.ends.push(`${name} with ${this.volumesInUse().length} in use, ${await this.mounts()} mounted`);
      return 0;
    };
    const stubborn: Program = async ({ signal: ended }) => {
      await clock.sleep(86_400_000, ended).catch(() => {});
      await clock.sleep(25_000, signal);
      return 0;
    };
    const config = clusterConfig(1, "unprivileged", {
      shutdownGracePeriod: periods.total,
      shutdownGracePeriodCriticalPods: periods.critical,
    });
    await clock.run(
      (async () => {
        this.#cluster = await createInProcessCluster(env, {
          config,
          programs: () => ({ serve, stubborn }),
          isolate: (_, seams) => ({ ...seams, kube: watchedClient(seams.kube, log) }),
        });
        await work();
      })(),
    );
    expect(log.refused).toEqual([]);
  }

  volumesInUse(): readonly string[] {
    return this.cluster.objects(resources.nodes)[0]?.status?.volumesInUse ?? [];
  }

  async mounts(): Promise<number> {
    return (await this.cluster.hostOf(nodeName).listMounts(`/n/${nodeName}`)).length;
  }

  pod(name: string): Stored<Pod> | undefined {
    return this.cluster.objects(resources.pods).find(({ metadata }) => metadata.name === name);
  }

  /** A pod with a claim of its own. */
  async createPod(name: string, spec: object = {}): Promise<void> {
    const claim = {
      metadata: ref(name),
      spec: {
        storageClassName: classNameOf(clusterPlugin("aws-ebs")),
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "32Mi" } },
      },
    };
    await this.cluster.kube.create(resources.persistentVolumeClaims, claim, { signal });
    const pod = volumePod({ name, command: ["serve", name], volume: claimVolume(name) });
    const full = { ...pod, spec: { ...pod.spec, terminationGracePeriodSeconds: 5, ...spec } } as Pod;
    await this.cluster.kube.create(resources.pods, full, { signal });
  }

  ready() {
    const node = this.cluster.objects(resources.nodes)[0];
    return node?.status?.conditions?.find(({ type }) => type === "Ready");
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    const untilMs = this.clock.monotonicMs() + 10 * 60_000;
    while (!holds()) {
      if (this.clock.monotonicMs() > untilMs) throw new Error(`not within 10 min: ${what}`);
      await this.clock.sleep(100, signal);
    }
  }
}

const critical = { priorityClassName: "system-node-critical" };
const terminated = {
  phase: "Failed",
  reason: "Terminated",
  message: "Pod was terminated in response to imminent node shutdown.",
};

it("a node that shuts down ends its pods, the critical ones last, and lets go of their volumes (node-agent.md 14)", async () => {
  const world = new World();
  await world.run({ total: 60, critical: 20 }, async () => {
    const { cluster, clock } = world;
    await world.createPod("regular");
    await world.createPod("critical", critical);
    const runs = (name: string) => world.pod(name)?.status?.phase === "Running";
    await world.until("both run", () => runs("regular") && runs("critical"));
    await world.until("both are in use", () => world.volumesInUse().length === 2);

    const beganMs = clock.monotonicMs();
    const restarted = cluster.restart(nodeName);
    await world.until("the node is not Ready", () => world.ready()?.status === "False");
    expect(world.ready()).toMatchObject({ reason: "KubeletNotReady", message: "node is shutting down" });
    const late: Pod = {
      metadata: ref("late"),
      spec: { nodeName, containers: [{ name: "c", image: "none", command: ["serve", "late"] }] },
    };
    await cluster.kube.create(resources.pods, late, { signal });
    await world.until("the late pod is refused", () => world.pod("late")?.status?.phase === "Failed");
    expect(world.pod("late")?.status).toMatchObject({
      reason: "NodeShutdown",
      message: "Pod was rejected as the node is shutting down.",
    });
    await restarted;

    expect(clock.monotonicMs() - beganMs).toBeLessThan(15_000);
    expect(world.ends.map((end) => end.split(" ").slice(0, 4).join(" "))).toEqual([
      "regular with 2 in",
      "critical with 1 in",
    ]);
    expect(world.pod("regular")?.status).toMatchObject(terminated);
    expect(world.pod("critical")?.status).toMatchObject(terminated);
    expect(world.volumesInUse()).toEqual([]);
    expect(await world.mounts()).toBe(0);
    const attached = () => cluster.objects(resources.nodes)[0]?.status?.volumesAttached ?? [];
    await world.until("nothing is attached", () => attached().length === 0);
    await world.until("the node that is up is Ready", () => world.ready()?.status === "True");
    await cluster.restart(nodeName); // Nothing is left to end.
  });
  expect(world.ends).toHaveLength(2);
});

it("a pod that takes too long to end does not take the time of the critical ones (node-agent.md 14)", async () => {
  const world = new World();
  await world.run({ total: 30, critical: 10 }, async () => {
    const { cluster, clock } = world;
    const stubborn = { containers: [{ name: "c", image: "none", command: ["stubborn"] }], volumes: [] };
    await world.createPod("stubborn", stubborn);
    await world.createPod("critical", critical);
    const runs = (name: string) => world.pod(name)?.status?.phase === "Running";
    await world.until("both run", () => runs("stubborn") && runs("critical"));
    const restarted = cluster.restart(nodeName);
    await clock.sleep(19_900, signal);
    expect([runs("stubborn"), runs("critical")]).toEqual([true, true]);
    await clock.sleep(4000, signal);
    expect([runs("stubborn"), runs("critical")]).toEqual([true, false]);
    await restarted;
    expect(world.pod("stubborn")?.status).toMatchObject(terminated);
  });
});
