/** `longshore status` under exactly the rights that it names, on the embedded API server with RBAC. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeObject, type Resource, resources, updateWithRetry } from "@longshore/kube";
import {
  assessmentRole,
  type CrossingJournal,
  type CrossingsRead,
  clusterStatusOf,
  collectCluster,
  configMapJournal,
  crossingSubject,
  readCrossings,
  readVolumeStory,
} from "@longshore/migration";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";

const signal = new AbortController().signal;
const group = "rbac.authorization.k8s.io";
const rbac = (kind: string, plural: string): Resource<KubeObject> => ({
  group,
  versions: ["v1"],
  kind,
  plural,
  namespaced: false,
});

/** A cluster with one volume in use, and what a reader with the role of an assessment, but for `withheld`, sees of it. */
async function cluster(withheld = "") {
  const clock = new VirtualClock();
  const runtime = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, { store: memoryStore() });
  const admin = server.client();
  const { rules } = assessmentRole() as unknown as {
    readonly rules: readonly { readonly resources: readonly string[] }[];
  };
  const granted = rules.map((rule) => ({
    ...rule,
    resources: rule.resources.filter((name) => name !== withheld),
  }));
  const role = { metadata: { name: "reader" }, rules: granted } as KubeObject;
  await admin.create(rbac("ClusterRole", "clusterroles"), role, { signal });
  const binding = {
    metadata: { name: "reader" },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: "reader" },
    subjects: [{ apiGroup: group, kind: "User", name: "reader" }],
  } as KubeObject;
  await admin.create(rbac("ClusterRoleBinding", "clusterrolebindings"), binding, { signal });
  const capacity = { storage: "1Gi" };
  const accessModes = ["ReadWriteOnce" as const];
  const pv = await admin.create(
    resources.persistentVolumes,
    {
      metadata: { name: "a", finalizers: ["kubernetes.io/pv-protection"] },
      spec: { capacity, accessModes, csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-a" } },
    },
    { signal },
  );
  const event = (name: string, uid: string, reason: string) =>
    admin.create(
      resources.events,
      {
        metadata: { name, namespace: "default" },
        involvedObject: { apiVersion: "v1", kind: "PersistentVolume", name: "a", uid },
        reason,
        message: "said",
        type: "Warning",
      },
      { signal },
    );
  await event("e1", pv.metadata.uid, "VolumeFailedDelete");
  await event("e2", "of-another-before", "VolumeDelete");
  const kube = server.client({ name: "reader", groups: ["system:authenticated"] });
  const inventory = await collectCluster({ clock, kube }, { signal });
  return { kube, inventory };
}

test("the status needs the rights of an assessment and no others", async () => {
  const { inventory } = await cluster();
  const status = clusterStatusOf(inventory);
  expect(status.gaps).toEqual([]);
  expect(status.volumes).toMatchObject([{ name: "a", form: "csi", handle: "vol-a", uses: [], holders: [] }]);
});

test("the story of a volume needs the right to list events, and has those of this volume alone", async () => {
  const { kube, inventory } = await cluster();
  const story = await readVolumeStory(kube, inventory, "a", signal);
  expect(story.objects).toEqual([
    { object: "PersistentVolume a", finalizers: ["kubernetes.io/pv-protection"] },
  ]);
  expect(story.events.map(({ reason }) => reason)).toEqual(["VolumeFailedDelete"]);
  const poor = await cluster("events");
  await expect(readVolumeStory(poor.kube, poor.inventory, "a", signal)).rejects.toThrow("forbidden");
});

test("a volume that is not there is named, with the remedy", async () => {
  const { kube, inventory } = await cluster();
  await expect(readVolumeStory(kube, inventory, "b", signal)).rejects.toThrow(
    "there is no PersistentVolume b that can be read; `longshore status` lists all",
  );
});

test("journals in the cluster are read under the right to read ConfigMaps, and what may not be read is said", async () => {
  const clock = new VirtualClock();
  const runtime = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, { store: memoryStore() });
  const admin = server.client();
  const at = (ms: number) => new Date(clock.now().getTime() - ms).toISOString();
  const journal = (plugin: string, run: CrossingJournal["run"]): CrossingJournal => ({
    version: 1,
    platform: "manual",
    plugin,
    direction: "rollback",
    startedAt: at(200_000),
    nodesDone: ["n1"],
    ...(run === undefined ? {} : { run }),
  });
  const write = (name: string, value: CrossingJournal) =>
    configMapJournal(admin, crossingSubject(name)).write(value, signal);
  const by = { user: "anna", host: "m1", pid: 7, processStartedAt: "x" };
  await write(
    "aws-ebs",
    journal("kubernetes.io/aws-ebs", { by, startedAt: at(200_000), aliveAt: at(30_000) }),
  );
  await write("cinder", journal("kubernetes.io/cinder", { by, startedAt: at(200_000), aliveAt: at(91_000) }));
  const paused = { at: at(1000), how: "paused" } as const;
  await write(
    "gce-pd",
    journal("kubernetes.io/gce-pd", { startedAt: at(2000), aliveAt: at(1000), ended: paused }),
  );
  await write("rbd", { ...journal("kubernetes.io/rbd", undefined), finishedAt: at(5000) });
  const states = ({ crossings }: CrossingsRead) =>
    crossings.map(({ plugin, state, interruption }) => [plugin, state, interruption?.how]);
  const expected = [
    ["kubernetes.io/aws-ebs", "running", undefined],
    // Whether a process of another machine lives cannot be asked: this one has not written for too long.
    ["kubernetes.io/cinder", "interrupted", "gone"],
    ["kubernetes.io/gce-pd", "interrupted", "paused"],
    ["kubernetes.io/rbd", "finished", undefined],
  ];
  expect(states(await readCrossings({ clock, kube: admin }, signal)).sort()).toEqual(expected);
  const kube = server.client({ name: "reader", groups: ["system:authenticated"] });
  const refused = await readCrossings({ clock, kube }, signal);
  expect(refused.crossings).toEqual([]);
  expect(refused.gap).toContain('the journals of crossings: configmaps "longshore-crossing-');
  const broken = { "journal.json": "{" };
  const ref = { namespace: "kube-system", name: "longshore-crossing-rbd" };
  await updateWithRetry(admin, resources.configMaps, ref, (map) => ({ ...map, data: broken }), { signal });
  await expect(readCrossings({ clock, kube: admin }, signal)).rejects.toThrow(
    "the journal ConfigMap kube-system/longshore-crossing-rbd is damaged: remove it",
  );
});
