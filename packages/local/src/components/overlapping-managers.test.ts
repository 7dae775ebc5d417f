/**
 * A controller manager that was stopped in the midst of a detach, as by SIGSTOP or a frozen machine, goes on after
 * another has taken its place and the node has changed over to CSI: it detaches nothing of what CSI has attached.
 */
import { resources } from "@longshore/kube";
import {
  type Clock,
  type Component,
  noMeter,
  SeededRandom,
  silentLogger,
  VirtualClock,
} from "@longshore/runtime";
import { expect, it } from "vitest";
import {
  createInProcessCluster,
  type InProcessCluster,
  type InProcessClusterOptions,
  type Seams,
} from "../cluster/in-process-cluster.ts";
import { clusterConfig } from "../layout/cluster-config.ts";
import { controlPlane } from "../platform/embedded-platform.ts";
import { recordPrograms, writerProgram } from "../records/in-process-programs.ts";
import { volumePod } from "../records/volume-pod.ts";
import { writerSet } from "../records/writer-set.ts";
import { type ControllerManagerOptions, startControllerManager } from "./controller-manager.ts";
import { inTreePluginsNamed } from "./in-tree-plugins.ts";

const signal = new AbortController().signal;
const gates = { CSIMigration: true, CSIMigrationAWS: true };

/** A process that can be stopped: it sees no answer and no timer until it goes on; time passes nevertheless. */
class Freezer {
  #at: string | undefined;
  #thaw: (() => void) | undefined;
  #frozen: Promise<void> = Promise.resolve();

  /** Stops when this is next called, before the answer is seen. */
  freezeAt(method: string): void {
    this.#at = method;
  }

  #freeze(): void {
    this.#at = undefined;
    this.#frozen = new Promise((resolve) => {
      this.#thaw = resolve;
    });
  }

  thaw(): void {
    this.#thaw?.();
    this.#thaw = undefined;
  }

  get isFrozen(): boolean {
    return this.#thaw !== undefined;
  }

  seams(seams: Seams): Seams {
    const { clock } = seams;
    const frozenClock: Clock = {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms, within) => clock.sleep(ms, within).finally(() => this.#frozen),
      timer: (ms, fire) => clock.timer(ms, () => void this.#frozen.then(fire)),
      deadline: (ms, parent) => {
        const ended = new AbortController();
        const inner = clock.deadline(ms, parent);
        inner.addEventListener("abort", () => void this.#frozen.then(() => ended.abort(inner.reason)));
        return ended.signal;
      },
    };
    const answers = <T extends object>(target: T): T =>
      new Proxy(target, {
        get: (_target, property) => {
          const member = Reflect.get(target, property, target) as unknown;
          if (typeof member !== "function") return member;
          if (property === "watch") return member.bind(target);
          return async (...args: unknown[]) => {
            await this.#frozen;
            if (property === this.#at) this.#freeze();
            try {
              return await Reflect.apply(member, target, args);
            } finally {
              await this.#frozen;
            }
          };
        },
      });
    return {
      ...seams,
      clock: frozenClock,
      kube: answers(seams.kube),
      host: answers(seams.host),
      cloudFor: (caller) => answers(seams.cloudFor(caller)),
    };
  }
}

/** A cluster whose controller manager can be stopped. */
interface Scene {
  readonly clock: VirtualClock;
  readonly cluster: InProcessCluster;
  readonly freezer: Freezer;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
  /** Starts another controller manager beside the one that is stopped. */
  startSecond(options: Partial<ControllerManagerOptions>): Component;
}

async function play(options: Partial<InProcessClusterOptions>, scene: (scene: Scene) => Promise<void>) {
  const clock = new VirtualClock();
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter: noMeter };
  const freezer = new Freezer();
  let seamsOfManager: Seams | undefined;
  const run = async () => {
    const cluster = await createInProcessCluster(env, {
      config: clusterConfig(1, "unprivileged"),
      programs: (host) => recordPrograms(clock, host),
      isolate(name, seams) {
        if (name !== controlPlane) return seams;
        seamsOfManager = seams;
        return freezer.seams(seams);
      },
      ...options,
    });
    const until: Scene["until"] = async (what, holds) => {
      for (let tries = 0; !(await holds()); tries++) {
        if (tries > 10_000) throw new Error(`never: ${what}`);
        await clock.sleep(20, signal);
      }
    };
    const startSecond: Scene["startSecond"] = (more) => {
      if (seamsOfManager === undefined) throw new Error("no controller manager was started");
      return startControllerManager(seamsOfManager, { gates, identity: "second", ...more });
    };
    await scene({ clock, cluster, freezer, until, startSecond });
    await cluster.stop();
  };
  await clock.run(run(), { limitMs: 3_600_000 });
}

it("detaches nothing once another leads (controllers.md Part E)", () =>
  play({}, async ({ clock, cluster, freezer, until, startSecond }) => {
    const { kube, platform, cloud } = cluster;
    const attached = () => cloud.disks().flatMap(({ attachments }) => attachments).length;
    const scale = (replicas: number) =>
      kube.patch(
        resources.statefulSets,
        { namespace: "default", name: "writer" },
        { type: "merge", body: { spec: { replicas } } },
        { signal },
      );
    const changes = async () =>
      (await cloud.calls(0, signal))
        .filter(({ op }) => op === "attachDisk" || op === "detachDisk")
        .map(({ path, op }) => `${path} ${op}`);
    await platform.setControlPlaneGates(gates, signal);
    const command = [writerProgram, "$(LONGSHORE_MOUNT_DATA)", "$(POD_NAME)", "700"];
    await kube.create(resources.statefulSets, writerSet({ replicas: 1, command }), { signal });
    await until("attached in-tree", () => attached() === 1);
    await until("running", async () => {
      const { items } = await kube.list(resources.pods, { signal });
      return items[0]?.status?.phase === "Running";
    });

    // Stopped when the detach has been recorded, and its next call is to ask the cloud for it.
    freezer.freezeAt("describeInstance");
    await scale(0);
    await until("the first is stopped", () => freezer.isFrozen);
    expect(attached()).toBe(1);
    const second = startSecond({ inTreePlugins: inTreePluginsNamed(["aws-ebs"]) });
    await until("the second has ended the detach", () => attached() === 0);
    await platform.setNodeGates("node-1", gates, signal);
    await scale(1);
    await until("attached by CSI", () => attached() === 1);
    expect((await changes()).slice(1)).toEqual(["in-tree detachDisk", "csi attachDisk"]);

    expect(freezer.isFrozen).toBe(true);
    freezer.thaw();
    await clock.sleep(30_000, signal);
    expect((await changes()).slice(1)).toEqual(["in-tree detachDisk", "csi attachDisk"]);
    expect(attached()).toBe(1);
    await second.stop();
  }));

it("runs no Flexvolume driver once another leads (controllers.md Part E; flexvolume.md 8)", () => {
  const directory = "/flexvolume";
  const runs: string[] = [];
  const flexVolumes: InProcessClusterOptions["flexVolumes"] = {
    directory,
    run: async ({ componentName, options }) => {
      const [command = ""] = options.args;
      runs.push(`${componentName} ${command}`);
      const status = command === "init" ? "Success" : "Not supported";
      return { code: 0, stdout: JSON.stringify({ status }), stderr: "" };
    },
  };
  return play({ flexVolumes }, async ({ clock, cluster, freezer, until, startSecond }) => {
    const { kube } = cluster;
    for (const host of [cluster.hostOf("node-1"), cluster.controlPlaneHost]) {
      await host.makeDirectory(`${directory}/example.com~disk`);
      await host.writeFileAtomic(`${directory}/example.com~disk/disk`, "driver", { mode: 0o755 });
    }
    await until("the driver is found", () => runs.includes(`${controlPlane} init`));

    // Stopped as the driver is asked whether it takes the volume, and the next call is to attach it.
    freezer.freezeAt("runProgram");
    const volume = { flexVolume: { driver: "example.com/disk" } };
    await kube.create(resources.pods, volumePod({ name: "p", command: [writerProgram], volume }), { signal });
    await until("the first is stopped", () => freezer.isFrozen);
    const second = startSecond({});
    const isSecond = ({ spec }: { readonly spec?: { readonly holderIdentity?: string | null } }) =>
      spec?.holderIdentity === "second";
    await until("the second leads", () => cluster.objects(resources.leases).some(isSecond));
    freezer.thaw();
    await clock.sleep(30_000, signal);
    // Both its probers have asked the driver what it can do; then one was asked about the volume.
    const ofFirst = runs.filter((run) => run.startsWith(controlPlane));
    expect(ofFirst.slice(2)).toEqual([`${controlPlane} getvolumename`]);
    await second.stop();
  });
});
