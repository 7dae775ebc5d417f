/** The pod worker against the embedded API server: what it does to runtime and volumes, and in which order. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import {
  createEventRecorder,
  type KubeClient,
  type Pod,
  type PodSpec,
  resources,
  type Stored,
} from "@longshore/kube";
import { type Component, recordingLogger, stopAll } from "@longshore/runtime";
import { virtualEnv } from "@longshore/testing/kube";
import type { NodeVolumes } from "@longshore/volumes";
import { afterEach, expect, test } from "vitest";
import type { ContainerConfig, ContainerState, ExecRequest, PodRuntime } from "../containers/pod-runtime.ts";
import { noProbeNetwork } from "../containers/probe-network.ts";
import { startNodePods } from "./node-pods.ts";
import { NodeShutdown } from "./node-shutdown.ts";
import { startPodWorker } from "./pod-worker.ts";

const { signal } = new AbortController();
const ref = { namespace: "default", name: "p" };
const components: Component[] = [];
afterEach(() => stopAll(components.splice(0)));

/** A node with a runtime and volumes that record what is asked of them. */
class TestNode {
  readonly log = recordingLogger();
  readonly env = { ...virtualEnv(), logger: this.log };
  readonly kube: KubeClient = createApiServer(this.env, { store: memoryStore() }).client();
  readonly calls: string[] = [];
  /** By UID of the pod, then by name. */
  readonly containers = new Map<string, Map<string, ContainerState>>();
  /** That of the container that started last. */
  environment: Readonly<Record<string, string>> = {};
  /** What a program beside a container ends with. */
  execExitCode = 0;
  areVolumesGone = true;
  readonly shutdown = new NodeShutdown(this.env.clock);
  #mount = () => {};

  async createPod(spec: Partial<PodSpec> = {}): Promise<string> {
    const pod: Pod = {
      metadata: { ...ref },
      spec: { nodeName: "n", containers: [{ name: "c", image: "none", command: ["run"] }], ...spec },
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
    const network = noProbeNetwork;
    const worker = startPodWorker(
      { ...env, kube, runtime, network },
      { volumes, events, pods, shutdown: this.shutdown, emptyDirs: { of: () => undefined }, logDir: "/logs" },
    );
    components.push(events, pods, worker);
  }

  /** The container of the pod ends. */
  end(podUID: string, name: string, exitCode: number): void {
    const state = this.containers.get(podUID)?.get(name);
    if (state?.kind !== "running") throw new Error(`${name} does not run`);
    const { previous: _, ...run } = state;
    const finishedAt = this.env.clock.now().toISOString();
    this.containers.get(podUID)?.set(name, { ...run, kind: "ended", exitCode, finishedAt });
  }

  #runtime(): PodRuntime {
    const { calls, containers } = this;
    const node = this;
    return {
      user: { uid: 0, gid: 0, mayChange: true },
      async startContainer({ podUID, containerName, attempt, quickRestarts, env }: ContainerConfig) {
        calls.push(`start ${containerName} ${attempt}`);
        node.environment = env;
        const states = containers.get(podUID) ?? new Map<string, ContainerState>();
        const startedAt = node.env.clock.now().toISOString();
        containers.set(
          podUID,
          states.set(containerName, { kind: "running", attempt, quickRestarts, startedAt }),
        );
      },
      state: async (podUID: string) => new Map(containers.get(podUID) ?? []),
      async stopContainer(podUID: string, name: string) {
        calls.push(`stop ${name}`);
        if (containers.get(podUID)?.get(name)?.kind === "running") node.end(podUID, name, 0);
      },
      async terminate(podUID: string) {
        calls.push("terminate");
        containers.delete(podUID);
      },
      async exec({ argv }: ExecRequest) {
        calls.push(`exec ${argv.join(" ")}`);
        async function* nothing(): AsyncGenerator<Uint8Array> {}
        return {
          async write() {},
          endInput() {},
          stdout: nothing(),
          stderr: nothing(),
          exitCode: Promise.resolve(node.execExitCode),
        };
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
  expect(node.work()).toEqual(["start c 0"]);
  expect((await node.pod())?.status?.phase).toBe("Running");

  node.areVolumesGone = false;
  await node.kube.delete(resources.pods, ref, { signal });
  await node.pass(100);
  expect(node.work().slice(0, 3)).toEqual(["stop c", "terminate", "areVolumesGone"]);
  expect((await node.pod())?.status?.phase).toBe("Succeeded");
  node.areVolumesGone = true;
  await node.pass(1000);
  expect(await node.pod()).toBeUndefined();
});

test("an agent that starts finds the running container, and ends what is left of a pod that is gone", async () => {
  const node = new TestNode();
  const uid = await node.createPod();
  const running: ContainerState = { kind: "running", attempt: 0, quickRestarts: 0, startedAt: "2026-01-01" };
  node.containers.set(uid, new Map([["c", running]])).set("gone", new Map([["c", running]]));
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

test("a container that ends is started again, the second time after a pause", async () => {
  const node = new TestNode();
  node.start();
  const uid = await node.createPod();
  await node.pass(100);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["wait", "start c 0"]);
  node.end(uid, "c", 1);
  await node.pass(1500);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["wait", "start c 1"]);
  node.end(uid, "c", 2);
  await node.pass(1500);
  const waiting = (await node.pod())?.status?.containerStatuses?.[0];
  expect(waiting).toMatchObject({
    restartCount: 1,
    state: { waiting: { reason: "CrashLoopBackOff" } },
    lastState: { terminated: { exitCode: 2 } },
  });
  expect(node.work()).toEqual([]);
  await node.pass(9000);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["wait", "start c 2"]);
});

test("init containers run first, one after another, and then all others with one wait for the volumes", async () => {
  const node = new TestNode();
  node.start();
  const command = ["run"];
  const uid = await node.createPod({
    initContainers: [{ name: "i", image: "none", command }],
    containers: [
      { name: "c", image: "none", command },
      { name: "d", image: "none", command },
    ],
  });
  await node.pass(100);
  node.mount();
  await node.pass(2000);
  expect(node.work()).toEqual(["wait", "start i 0"]);
  expect((await node.pod())?.status?.phase).toBe("Pending");
  node.end(uid, "i", 0);
  await node.pass(1000);
  node.mount();
  await node.pass(100);
  expect(node.work()).toEqual(["wait", "start c 0", "start d 0"]);
  expect((await node.pod())?.status?.phase).toBe("Running");
});

test("a readiness probe decides on readiness, a liveness probe restarts the container, hooks run", async () => {
  const node = new TestNode();
  node.start();
  const hook = (name: string) => ({ exec: { command: [name] } });
  await node.createPod({
    containers: [
      {
        name: "c",
        image: "none",
        command: ["run"],
        readinessProbe: { ...hook("ready"), periodSeconds: 2 },
        livenessProbe: { ...hook("alive"), periodSeconds: 5, initialDelaySeconds: 8, failureThreshold: 2 },
        lifecycle: { postStart: hook("started"), preStop: hook("stopping") },
      },
    ],
  });
  await node.pass(100);
  node.mount();
  await node.pass(3000);
  expect(node.work()).toEqual(["wait", "start c 0", "exec started", "exec ready", "exec ready"]);
  const isReady = async () => (await node.pod())?.status?.containerStatuses?.[0]?.ready;
  expect(await isReady()).toBe(true);
  node.execExitCode = 1;
  await node.pass(6000);
  expect(await isReady()).toBe(false);
  await node.pass(5000);
  node.mount();
  await node.pass(100);
  const work = node.work().filter((call) => call !== "exec ready");
  expect(work).toEqual([
    "exec alive",
    "exec alive",
    "exec stopping",
    "stop c",
    "wait",
    "start c 1",
    "exec started",
    "stop c",
  ]);
});

test("a value that is not there yet keeps the container waiting, and starts it once it is", async () => {
  const node = new TestNode();
  node.start();
  const configMapKeyRef = { name: "settings", key: "mode" };
  await node.createPod({
    containers: [
      { name: "c", image: "none", command: ["run"], env: [{ name: "MODE", valueFrom: { configMapKeyRef } }] },
    ],
  });
  for (let i = 0; i < 3; i++) {
    await node.pass(1000);
    node.mount();
  }
  const status = async () => (await node.pod())?.status?.containerStatuses?.[0];
  expect(await status()).toMatchObject({
    state: {
      waiting: { reason: "CreateContainerConfigError", message: expect.stringContaining("settings") },
    },
  });
  expect(node.work()).not.toContain("start c 0");
  const settings = { metadata: { name: "settings", namespace: "default" }, data: { mode: "fast" } };
  await node.kube.create(resources.configMaps, settings, { signal });
  for (let i = 0; i < 3; i++) {
    await node.pass(11_000);
    node.mount();
    await node.pass(100);
  }
  expect(node.work()).toContain("start c 0");
});

test("a container without a command is reported and logged once, and its status is not written again", async () => {
  const node = new TestNode();
  node.start();
  await node.createPod({ containers: [{ name: "c", image: "none" }] });
  const pass = async () => {
    await node.pass(11_000);
    node.mount();
    await node.pass(100);
  };
  for (let i = 0; i < 3; i++) await pass();
  const first = await node.pod();
  expect(first?.status?.containerStatuses?.[0]?.state?.waiting).toEqual({
    reason: "CreateContainerConfigError",
    message: expect.stringContaining("spec.containers[0].command"),
  });
  for (let i = 0; i < 20; i++) await pass();
  expect((await node.pod())?.metadata.resourceVersion).toBe(first?.metadata.resourceVersion);
  expect(node.log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
  expect(node.log.lines.filter(({ level }) => level === "error")).toEqual([]);
  const { items: events } = await node.kube.list(resources.events, { signal });
  expect(events.map(({ reason, count }) => [reason, count ?? 1])).toEqual([
    ["CreateContainerConfigError", 1],
  ]);
});

test("a limit that a container does not have is in its environment as what the node has", async () => {
  const node = new TestNode();
  const allocatable = { cpu: "4", memory: "8Gi" };
  await node.kube.create(resources.nodes, { metadata: { name: "n" }, status: { allocatable } }, { signal });
  node.start();
  const resourceFieldRef = { resource: "limits.memory", divisor: "1Gi" };
  await node.createPod({
    containers: [
      {
        name: "c",
        image: "none",
        command: ["run"],
        env: [{ name: "MEMORY", valueFrom: { resourceFieldRef } }],
      },
    ],
  });
  await node.pass(1000);
  node.mount();
  await node.pass(1000);
  expect(node.work()).toContain("start c 0");
  expect(node.environment).toEqual({ MEMORY: "8" });
});
