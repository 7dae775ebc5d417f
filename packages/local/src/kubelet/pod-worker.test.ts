/** The pod worker against the embedded API server: what it does to runtime and volumes, and in which order. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { createEventRecorder, type KubeClient, type Pod, resources, type Stored } from "@longshore/kube";
import { type Component, stopAll } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import type { NodeVolumes } from "@longshore/volumes";
import { afterEach, expect, test } from "vitest";
import type { PodRuntime, PodState } from "../containers/pod-runtime.ts";
import { startNodePods } from "./node-pods.ts";
import { startPodWorker } from "./pod-worker.ts";

const { signal } = new AbortController();
const ref = { namespace: "default", name: "p" };
const components: Component[] = [];
afterEach(() => stopAll(components.splice(0)));

/** A node with a runtime and volumes that record what is asked of them. */
class TestNode {
  readonly env = virtualEnv();
  readonly kube: KubeClient = createApiServer(this.env, { store: memoryStore() }).client();
  readonly calls: string[] = [];
  readonly containers = new Map<string, PodState>();
  areVolumesGone = true;
  #mount = () => {};

  async createPod(): Promise<string> {
    const pod: Pod = {
      metadata: { ...ref },
      spec: { nodeName: "n", containers: [{ name: "c", image: "none", command: ["run"] }] },
    };
    return (await this.kube.create(resources.pods, pod, { signal })).metadata.uid;
  }

  pod(): Promise<Stored<Pod> | undefined> {
    return this.kube.get(resources.pods, ref, { signal });
  }

  /** What was asked since it was called last, without the pods that the volume manager was given. */
  work(): readonly string[] {
    return this.calls.splice(0).filter((call) => !call.startsWith("setPods"));
  }

  async pass(ms: number): Promise<void> {
    await this.env.clock.advance(ms);
  }

  /** The volumes of the pod that waits are mounted. */
  mount(): void {
    this.#mount();
  }

  start(): void {
    const { env, kube } = this;
    const pods = startNodePods({ ...env, kube }, "n");
    const events = createEventRecorder({ ...env, kube }, { component: "kubelet", host: "n" });
    const volumes = this.#volumes();
    const runtime = this.#runtime();
    const worker = startPodWorker({ ...env, kube, runtime }, { volumes, events, pods, logDir: "/logs" });
    components.push(events, pods, worker);
  }

  #runtime(): PodRuntime {
    const { calls, containers } = this;
    return {
      async ensureRunning({ podUID }: { podUID: string }) {
        calls.push("start");
        containers.set(podUID, { kind: "running" });
      },
      state: async (podUID: string) => containers.get(podUID) ?? { kind: "absent" },
      async terminate(podUID: string) {
        calls.push("terminate");
        containers.delete(podUID);
      },
      list: async () => [...containers.keys()],
    } as unknown as PodRuntime;
  }

  #volumes(): NodeVolumes {
    const { calls } = this;
    return {
      setPods: (pods: readonly Pod[]) => calls.push(`setPods ${pods.length}`),
      waitForAttachAndMount: (_pod: Pod, within: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          calls.push("wait");
          this.#mount = resolve;
          within.addEventListener("abort", () => reject(within.reason));
        }),
      mountedVolumes: () => new Map(),
      podVolumesGone: () => {
        calls.push("areVolumesGone");
        return this.areVolumesGone;
      },
    } as unknown as NodeVolumes;
  }
}

test("a container starts once the volumes are mounted, and ends before they go", async () => {
  const node = new TestNode();
  node.start();
  await node.pass(100);
  expect(node.calls.splice(0)).toEqual(["setPods 0"]);
  await node.createPod();
  await node.pass(5000);
  expect(node.calls[0]).toBe("setPods 1");
  expect(node.work()).toEqual(["wait"]);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["start"]);
  expect((await node.pod())?.status?.phase).toBe("Running");

  node.areVolumesGone = false;
  await node.kube.delete(resources.pods, ref, { signal });
  await node.pass(100);
  expect(node.work().slice(0, 2)).toEqual(["terminate", "areVolumesGone"]);
  expect((await node.pod())?.status?.phase).toBe("Succeeded");
  node.areVolumesGone = true;
  await node.pass(1000);
  expect(await node.pod()).toBeUndefined();
});

test("an agent that starts finds the running container, and ends what is left of a pod that is gone", async () => {
  const node = new TestNode();
  const uid = await node.createPod();
  node.containers.set(uid, { kind: "running" }).set("gone", { kind: "running" });
  node.start();
  await node.pass(10_000);
  expect([...node.containers.keys()]).toEqual([uid]);
  expect(node.calls[0]).toBe("setPods 1");
  expect(node.work()).toEqual(["terminate"]);
  expect((await node.pod())?.status?.phase).toBe("Running");
});

test("a pod that is deleted while it waits for its volumes is not started", async () => {
  const node = new TestNode();
  node.start();
  await node.createPod();
  await node.pass(1000);
  expect(node.work()).toEqual(["wait"]);
  await node.kube.delete(resources.pods, ref, { signal });
  await node.pass(100);
  expect(await node.pod()).toBeUndefined(); // At once: its deletion ends the wait.
  node.mount();
  await node.pass(5000);
  expect(node.calls).not.toContain("start");
});

test("a container that ends is started again after a pause", async () => {
  const node = new TestNode();
  node.start();
  const uid = await node.createPod();
  await node.pass(100);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["wait", "start"]);
  node.containers.set(uid, { kind: "ended", exitCode: 1 });
  await node.pass(1500);
  expect(node.work()).toEqual(["terminate"]);
  const waiting = (await node.pod())?.status?.containerStatuses?.[0];
  expect(waiting).toMatchObject({ restartCount: 1, state: { waiting: { reason: "CrashLoopBackOff" } } });
  await node.pass(1000);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["wait", "start"]);
});
