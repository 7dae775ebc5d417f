/** The shutdown of a node: its decision as a table, and its time. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeClient, type Node, type Pod, resources, type Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, test } from "vitest";
import {
  decideNodeShutdownStep,
  type NodeShutdownObservation,
  type NodeShutdownStep,
  type ShutdownPhase,
  shutdownMessage,
} from "./decide-node-shutdown-step.ts";
import { startNodePods } from "./node-pods.ts";
import { NodeShutdown, shutDownNode } from "./node-shutdown.ts";

const { signal } = new AbortController();
const periods = { totalMs: 30_000, criticalPodsMs: 10_000 };
const podOf = (priority: number) =>
  ({
    metadata: { name: "p", namespace: "ns", uid: "u", resourceVersion: "1" },
    spec: { priority },
  }) as Stored<Pod>;
const regular = podOf(1_999_999_999);
const critical = podOf(2_000_000_000);
const nodeOf = (message: string, volumesInUse?: string[]) =>
  ({
    metadata: { name: "n", uid: "n", resourceVersion: "1" },
    status: { conditions: [{ type: "Ready", status: "False", message }], volumesInUse },
  }) as unknown as Stored<Node>;
const first: ShutdownPhase = { group: "regular", endsMs: 120_000 };
const last: ShutdownPhase = { group: "critical", endsMs: 130_000 };

const table: readonly [string, Partial<NodeShutdownObservation>, NodeShutdownStep][] = [
  ["the regular pods end first", { left: [regular, critical] }, { step: "endPods", phase: first }],
  ["they have their time", { phase: first, left: [regular] }, { step: "wait", ms: 500 }],
  [
    "what is left of it is not exceeded",
    { phase: { ...first, endsMs: 100_100 }, left: [regular] },
    { step: "wait", ms: 100 },
  ],
  [
    "the critical ones follow as soon as the others have ended",
    { phase: first, left: [critical] },
    { step: "endPods", phase: { group: "critical", endsMs: 110_000 } },
  ],
  [
    "or when the time is over",
    { phase: { ...first, endsMs: 100_000 }, left: [regular, critical] },
    { step: "endPods", phase: { group: "critical", endsMs: 110_000 } },
  ],
  ["the critical ones are waited for", { phase: last, left: [critical] }, { step: "wait", ms: 500 }],
  [
    "the Node has to say that it shuts down",
    { phase: last, node: nodeOf("node agent is posting ready status") },
    { step: "wait", ms: 500 },
  ],
  ["there has to be a Node", { phase: last, node: undefined }, { step: "wait", ms: 500 }],
  [
    "no volume may be in use",
    { phase: last, node: nodeOf(shutdownMessage, ["v"]) },
    { step: "wait", ms: 500 },
  ],
  ["then it is done", { phase: last }, { step: "finish" }],
];

test.each(table)("%s", (_name, more, expected) => {
  const node = nodeOf(shutdownMessage);
  const seen = { periods, phase: undefined, nowMs: 100_000, left: [], node, ...more };
  expect(pureDecision(decideNodeShutdownStep)(seen)).toEqual(expected);
});

/** An API server that does not answer. */
const silent = {
  list: (_resource: unknown, options: { readonly signal: AbortSignal }) =>
    new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason))),
} as unknown as KubeClient;

test("volumes that are not unmounted, and pods that never become known, end with the time", async () => {
  for (const isKnown of [true, false]) {
    const env = virtualEnv();
    const { clock } = env;
    const kube = createApiServer(env, { store: memoryStore() }).client();
    const metadata = { namespace: "default", name: "p" };
    const pod: Pod = { metadata, spec: { nodeName: "n", containers: [{ name: "c", image: "none" }] } };
    await kube.create(resources.pods, pod, { signal });
    const body = { status: { phase: "Failed" } };
    await kube.patch(resources.pods, metadata, { type: "merge", body }, { subresource: "status", signal });
    const pods = startNodePods({ ...env, kube: isKnown ? kube : silent }, "n");
    const shutdown = new NodeShutdown(clock);
    const phases: (string | undefined)[] = [];
    const beganMs = clock.monotonicMs();
    await clock.run(
      shutDownNode(env, {
        shutdown,
        periods,
        pods,
        volumes: { podVolumesGone: () => false },
        node: () => nodeOf(shutdownMessage),
        onPhase: () => void phases.push(shutdown.phase?.group),
      }),
    );
    expect(clock.monotonicMs() - beganMs).toBe(30_000);
    expect(phases).toEqual(isKnown ? ["regular", "critical"] : []);
    await clock.run(pods.stop());
  }
});
