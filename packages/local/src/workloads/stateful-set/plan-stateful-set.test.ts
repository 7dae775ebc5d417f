import type { Pod, StatefulSet, Stored } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { planStatefulSet } from "./plan-stateful-set.ts";
import { claimsOfStatefulSet, podOfStatefulSet } from "./pod-of-stateful-set.ts";

function aSet(spec: Partial<StatefulSet["spec"]> = {}): Stored<StatefulSet> {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "web", namespace: "prod", uid: "set-uid", resourceVersion: "1" },
    spec: {
      serviceName: "web",
      replicas: 3,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "c" }], volumes: [{ name: "data", emptyDir: {} }] },
      },
      volumeClaimTemplates: [
        { metadata: { name: "data" }, spec: { resources: { requests: { storage: "1Gi" } } } },
      ],
      ...spec,
    },
  } as Stored<StatefulSet>;
}

const readyAt = new Date("2026-01-01T00:00:00Z");
const now = new Date(readyAt.getTime() + 5000);

function aPod(
  name: string,
  how: "ready" | "starting" | "failed" | "deleting" = "ready",
  revision = "new",
): Stored<Pod> {
  const phase = how === "failed" ? "Failed" : how === "starting" ? "Pending" : "Running";
  const ready = how === "ready" || how === "deleting";
  return {
    metadata: {
      name,
      namespace: "prod",
      uid: `uid-${name}`,
      resourceVersion: "1",
      labels: { "controller-revision-hash": revision },
      ...(how === "deleting" ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    status: {
      phase,
      conditions: ready ? [{ type: "Ready", status: "True", lastTransitionTime: readyAt.toISOString() }] : [],
    },
  } as Stored<Pod>;
}

describe("planStatefulSet", () => {
  const parallel = { podManagementPolicy: "Parallel" } as const;
  const cases = [
    { name: "makes the first pod only, in order", set: aSet(), pods: [], create: [0], remove: [] },
    {
      name: "makes all pods at once in parallel",
      set: aSet(parallel),
      pods: [],
      create: [0, 1, 2],
      remove: [],
    },
    {
      name: "waits for a pod that starts",
      set: aSet(),
      pods: [aPod("web-0", "starting")],
      create: [],
      remove: [],
    },
    { name: "goes on after a ready pod", set: aSet(), pods: [aPod("web-0")], create: [1], remove: [] },
    {
      name: "waits for a pod that is being deleted, and does not make its successor",
      set: aSet(),
      pods: [aPod("web-0"), aPod("web-1", "deleting")],
      create: [],
      remove: [],
    },
    {
      name: "deletes a failed pod, so that it is made again",
      set: aSet(parallel),
      pods: [aPod("web-0"), aPod("web-1", "failed"), aPod("web-2")],
      create: [],
      remove: ["web-1"],
    },
    {
      name: "scales down from the highest ordinal, one at a time in order",
      set: aSet({ replicas: 1 }),
      pods: [aPod("web-0"), aPod("web-1"), aPod("web-2")],
      create: [],
      remove: ["web-2"],
    },
    {
      name: "scales down all at once in parallel, and leaves those that already go",
      set: aSet({ ...parallel, replicas: 0 }),
      pods: [aPod("web-0"), aPod("web-1", "deleting"), aPod("web-2")],
      create: [],
      remove: ["web-2", "web-0"],
    },
    {
      name: "replaces the highest ordinal of an earlier template",
      set: aSet(),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2")],
      create: [],
      remove: ["web-1"],
    },
    {
      name: "replaces none while a new pod starts",
      set: aSet(),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2", "starting")],
      create: [],
      remove: [],
    },
    {
      name: "replaces none in parallel either while a higher one starts",
      set: aSet(parallel),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2", "starting")],
      create: [],
      remove: [],
    },
    {
      name: "replaces none while one is on its way out",
      set: aSet(parallel),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2", "deleting", "old")],
      create: [],
      remove: [],
    },
    {
      name: "replaces none until the new pod has been ready for minReadySeconds",
      set: aSet({ ...parallel, minReadySeconds: 6 }),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2")],
      create: [],
      remove: [],
    },
    {
      name: "replaces the next one once the new pod has been ready for minReadySeconds",
      set: aSet({ minReadySeconds: 5 }),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2")],
      create: [],
      remove: ["web-1"],
    },
    {
      name: "replaces none below the partition",
      set: aSet({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } }),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2")],
      create: [],
      remove: [],
    },
    {
      name: "replaces none with OnDelete",
      set: aSet({ updateStrategy: { type: "OnDelete" } }),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2", "ready", "old")],
      create: [],
      remove: [],
    },
    {
      name: "is stuck, in order, on a pod that never becomes ready, whatever the template is by now",
      set: aSet(),
      pods: [aPod("web-0"), aPod("web-1"), aPod("web-2", "starting", "broken")],
      create: [],
      remove: [],
    },
    {
      name: "is not stuck in parallel",
      set: aSet(parallel),
      pods: [aPod("web-0"), aPod("web-1"), aPod("web-2", "starting", "broken")],
      create: [],
      remove: ["web-2"],
    },
    {
      name: "scales down before it replaces, in order",
      set: aSet({ replicas: 2 }),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old"), aPod("web-2", "ready", "old")],
      create: [],
      remove: ["web-2"],
    },
    {
      name: "makes what is missing before it replaces",
      set: aSet(parallel),
      pods: [aPod("web-0", "ready", "old"), aPod("web-1", "ready", "old")],
      create: [2],
      remove: [],
    },
  ];
  for (const { name, set, pods, create, remove } of cases) {
    it(name, () => {
      const step = planStatefulSet(set, pods, { updateRevision: "new", now });
      expect(step.create).toEqual(create);
      expect(step.delete.map((p) => p.metadata.name)).toEqual(remove);
    });
  }
});

describe("the pod and claims of an ordinal", () => {
  it("a claim takes the place of the template's volume of that name", () => {
    expect(
      podOfStatefulSet(aSet(), 1, { name: "new", template: aSet().spec?.template }).spec?.volumes,
    ).toEqual([{ name: "data", persistentVolumeClaim: { claimName: "data-web-1" } }]);
  });
  it("the claim has no owner, so that it outlives the set", () => {
    const [claim] = claimsOfStatefulSet(aSet(), 2);
    expect(claim?.metadata).toMatchObject({ name: "data-web-2", namespace: "prod", labels: { app: "web" } });
    expect(claim?.metadata?.ownerReferences).toBeUndefined();
  });
});
