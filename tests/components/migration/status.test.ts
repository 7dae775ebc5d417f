/** `longshore status` under exactly the rights that it names, on the embedded API server with RBAC. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type KubeObject, type Resource, resources } from "@longshore/kube";
import { assessmentRole, clusterStatusOf, collectCluster, readVolumeStory } from "@longshore/migration";
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
