import {
  KubeApiError,
  type KubeClient,
  type KubeObject,
  type ObjectRef,
  type Resource,
  resources,
} from "@longshore/kube";
import { SimulatedHost } from "@longshore/runtime";
import { expect, it } from "vitest";
import type { CrossingJournal } from "./crossing-journal.ts";
import { crossingSubject } from "./crossing-subject.ts";
import { configMapJournal, fileJournal, nodesDoneOf, twoJournals } from "./journal-store.ts";
import type { CrossingPlan } from "./plan-document.ts";

const signal = new AbortController().signal;
const journal = (writes: number, startedAt = "2026-01-01T00:00:00Z"): CrossingJournal => ({
  version: 1,
  platform: "manual",
  plugin: "kubernetes.io/aws-ebs",
  direction: "migrate",
  startedAt,
  nodesDone: ["n1"],
  run: { startedAt, aliveAt: startedAt },
  writes,
});

function world() {
  const maps = new Map<string, KubeObject>();
  const kube = {
    get: async (_resource: Resource<KubeObject>, { name }: ObjectRef) => maps.get(name),
    create: async (_resource: Resource<KubeObject>, object: KubeObject) => {
      maps.set(object.metadata?.name ?? "", object);
      return object;
    },
    update: async (_resource: Resource<KubeObject>, object: KubeObject) => {
      maps.set(object.metadata?.name ?? "", object);
      return object;
    },
  } as unknown as KubeClient;
  const host = new SimulatedHost({ name: "m1" });
  const inCluster = configMapJournal(kube, crossingSubject("aws-ebs"));
  return { kube, maps, host, inCluster, both: twoJournals(fileJournal(host, "/j.json"), inCluster) };
}

it("is in both places, and read from the cluster where the disk has none", async () => {
  const { host, inCluster, both } = world();
  expect(await both.read(signal)).toBeUndefined();
  await both.write(journal(1), signal);
  await both.write(journal(2), signal);
  expect(await inCluster.read(signal)).toEqual(await fileJournal(host, "/j.json").read(signal));
  const elsewhere = twoJournals(fileJournal(new SimulatedHost({ name: "m2" }), "/j.json"), inCluster);
  expect(await elsewhere.read(signal)).toEqual(await both.read(signal));
});

it("of two the one that was written more often counts: another machine, with a slow clock, may have gone on since", async () => {
  const { host, inCluster, both } = world();
  const older = journal(3, "2026-01-01T00:05:00Z");
  const newer = journal(4);
  await fileJournal(host, "/j.json").write(older, signal);
  await inCluster.write(newer, signal);
  expect(await both.read(signal)).toEqual(newer);
  await inCluster.write(older, signal);
  await fileJournal(host, "/j.json").write(newer, signal);
  expect(await both.read(signal)).toEqual(newer);
});

it("a damaged one names the place", async () => {
  const { maps, inCluster } = world();
  const { kind } = resources.configMaps;
  maps.set("longshore-crossing-aws-ebs", {
    kind,
    metadata: { name: "x" },
    data: { "journal.json": "{" },
  } as KubeObject);
  await expect(inCluster.read(signal)).rejects.toThrow(
    "the journal ConfigMap kube-system/longshore-crossing-aws-ebs is damaged",
  );
});

it("says which nodes a run of a plan has carried across, and none of another plan or direction", async () => {
  const { kube, inCluster } = world();
  const nodes = ["n1", "n2"].map((name) => ({ name, uid: name, batch: 1 }));
  const plan = { madeAt: "2026-01-01T00:00:00Z", direction: "migrate", nodes } as const;
  const subject = crossingSubject("aws-ebs");
  const done = (over: Partial<CrossingPlan> = {}) => nodesDoneOf(kube, subject, { ...plan, ...over }, signal);
  expect(await done()).toEqual([]);
  await inCluster.write({ ...journal(1), plan: plan.madeAt }, signal);
  expect(await done()).toEqual(["n1"]);
  expect(await done({ madeAt: "2026-01-02T00:00:00Z" })).toEqual([]);
  expect(await done({ direction: "rollback" })).toEqual([]);
  await inCluster.write({ ...journal(2), nodesDoneEarlier: 1, plan: plan.madeAt }, signal);
  expect(await done()).toEqual(["n1", "n2"]);
  const refuses = (code: number) =>
    ({
      get: () =>
        Promise.reject(
          new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code, message: "no" }),
        ),
    }) as never;
  expect(await nodesDoneOf(refuses(403), subject, plan, signal)).toEqual([]);
  await expect(nodesDoneOf(refuses(500), subject, plan, signal)).rejects.toThrow("no");
});
