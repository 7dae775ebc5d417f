/** Bad input in a whole cluster: one clear sentence says what is wrong, nothing else is lost, and all goes on afterwards. */
import { resources } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { initialGates } from "../layout/cluster-config.ts";
import { type ClusterPlugin, classNameOf, clusterPlugin, clusterPlugins } from "../layout/plugins.ts";
import { onPodVolumesCluster, type PodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const data = (claimName: string) => [{ name: "data", persistentVolumeClaim: { claimName } }];

const createClaim = ({ cluster: { kube } }: PodVolumesCluster, name: string, storageClassName: string) =>
  kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name, namespace },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        storageClassName,
      },
    },
    { signal },
  );

/** Deletes disks at their provider, as an operator might who does not know of the cluster. */
async function loseDisks(
  { cluster: { cloud } }: PodVolumesCluster,
  plugin: ClusterPlugin,
  ids: readonly string[],
) {
  const caller = cloud.forCaller({ provider: plugin.name, path: "csi", component: "operator" });
  for (const id of ids) await caller.deleteDisk(id, signal);
}

/** What says it; in-tree with what to do, by CSI in the driver's own words. */
const sentences = [
  ["in-tree", /the provider has no such disk: correct the volume's source, or delete the volume/],
  [
    "csi",
    /(ControllerPublishVolume|Node(Stage|Publish)Volume) failed with NOT_FOUND: .*(no disk|does not exist)/,
  ],
] as const;

describe.each(sentences)("a disk that was deleted at its provider, %s", (path, sentence) => {
  it.each(clusterPlugins.map(({ name }) => name))(
    "of %s: the pod says so, others go on, and pod and claim can be deleted (controllers.md A7; node-agent.md 7.3, 8)",
    (name) => {
      const plugin = clusterPlugin(name);
      return onPodVolumesCluster(
        async (world) => {
          const { kube, cloud } = world.cluster;
          const attached = () => cloud.disks().flatMap(({ attachments }) => attachments).length;
          const ids: (readonly string[])[] = [];
          for (const claim of ["kept", "lost"]) {
            await createClaim(world, claim, classNameOf(plugin));
            await world.createPod(claim, { volumes: data(claim) });
            await world.host.appendFileDurable(`${(await world.runs(claim))("/data")}/f`, claim);
            ids.push(cloud.disks().map(({ id }) => id));
          }
          const [kept = [], both = []] = ids;
          const used = attached();
          await world.deletePod("lost");
          if (!plugin.isShared) await world.until("it is detached", async () => attached() < used);
          await loseDisks(
            world,
            plugin,
            both.filter((id) => !kept.includes(id)),
          );
          expect(cloud.disks().map(({ id }) => id)).toEqual(kept);
          await world.createPod("q", { volumes: data("lost") });
          const says = (text: RegExp) =>
            world.until(`a warning: ${text}`, async () =>
              (await world.warnings("q")).some((warning) => text.test(warning)),
            );
          await says(sentence);
          // Who waits says for what, and not for how long it has waited.
          await says(/^timed out waiting for volumes: unmounted volumes=\[data\]/);
          expect((await world.warnings("q")).join()).not.toMatch(/deadline of/);

          expect(await world.host.readFile(`${(await world.runs("kept"))("/data")}/f`)).toBe("kept");
          await world.deletePod("q");
          await kube.delete(resources.persistentVolumeClaims, { name: "lost", namespace }, { signal });
          const volumes = async () => (await kube.list(resources.persistentVolumes, { signal })).items;
          await world.until("its volume is gone", async () => (await volumes()).length === 1);
          const attachments = (await kube.list(resources.volumeAttachments, { signal })).items;
          const [left] = await volumes();
          expect(
            attachments.filter(({ spec }) => spec.source.persistentVolumeName !== left?.metadata.name),
          ).toEqual([]);
          await world.deletePod("kept");
          await world.createPod("next", { volumes: data("kept") });
          expect(await world.host.readFile(`${(await world.runs("next"))("/data")}/f`)).toBe("kept");
        },
        { plugins: [name], ...(path === "csi" ? { gates: { ...initialGates, [plugin.gate]: true } } : {}) },
      );
    },
  );
});

// Shares have no file system of their own, and what Portworx' classes say is checked before anything is made.
const formatted = clusterPlugins
  .map(({ name }) => name)
  .filter((name) => name !== "azure-file" && name !== "portworx-volume");

describe.each([
  [
    "in-tree",
    /^MountVolume failed .*: this node cannot make a file system of fsType "fat99": correct the volume's fsType/,
  ],
  ["csi", /fat99/],
] as const)("a class with a file system that there is not, %s", (path, sentence) => {
  it.each(formatted)(
    "of %s: it is named, the claim can be deleted, and the next is served (node-agent.md 7.3)",
    (name) => {
      const plugin = clusterPlugin(name);
      return onPodVolumesCluster(
        async (world) => {
          const { kube, cloud } = world.cluster;
          const right = await kube.get(resources.storageClasses, { name: classNameOf(plugin) }, { signal });
          await kube.create(
            resources.storageClasses,
            {
              metadata: { name: "wrong" },
              provisioner: plugin.inTreeName,
              parameters: { ...right?.parameters, fsType: "fat99" },
              volumeBindingMode: "WaitForFirstConsumer",
            },
            { signal },
          );
          await createClaim(world, "wrong", "wrong");
          await world.createPod("p", { volumes: data("wrong") });
          await world.until("it is named", async () => {
            const { items } = await kube.list(resources.events, { namespace, signal });
            return items.some(({ type, message = "" }) => type === "Warning" && sentence.test(message));
          });
          await world.deletePod("p");
          await kube.delete(resources.persistentVolumeClaims, { name: "wrong", namespace }, { signal });
          await world.until("nothing is left of it", async () => {
            const { items } = await kube.list(resources.persistentVolumes, { signal });
            return items.length === 0 && cloud.disks().length === 0;
          });
          await createClaim(world, "right", classNameOf(plugin));
          await world.createPod("q", { volumes: data("right") });
          await world.runs("q");
        },
        { plugins: [name], ...(path === "csi" ? { gates: { ...initialGates, [plugin.gate]: true } } : {}) },
      );
    },
  );
});
