/** Many volumes at once, from claim to disk and back: the cluster in one process, on the virtual clock. */
import { resources } from "@longshore/kube";
import { recordingLogger } from "@longshore/runtime";
import { expect, it } from "vitest";
import { clusterPlugin } from "../layout/plugins.ts";
import { onPodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const namespace = "default";
const { driverName } = clusterPlugin("aws-ebs");
const names = Array.from({ length: 17 }, (_, i) => `c${i}`);

it("seventeen volumes are made, used and deleted, and no warning says that a write came too late (sidecars.md 2.4)", async () => {
  const logger = recordingLogger();
  // Before the node has the driver, there is nowhere to make a volume for: that is said, and is no race.
  let saidBefore = 0;
  await onPodVolumesCluster(
    async ({ cluster, until, createPod, runs, deletePod }) => {
      const { kube, cloud } = cluster;
      await until("the node has the driver", async () => {
        const { items } = await kube.list(resources.csiNodes, { signal });
        return items.some(({ spec }) => spec.drivers.some(({ name }) => name === driverName));
      });
      saidBefore = logger.lines.length;
      await kube.create(
        resources.storageClasses,
        { metadata: { name: "csi" }, provisioner: driverName },
        { signal },
      );
      for (const name of names) {
        const spec = {
          accessModes: ["ReadWriteOnce"],
          resources: { requests: { storage: "1Gi" } },
          storageClassName: "csi",
        };
        await kube.create(
          resources.persistentVolumeClaims,
          { metadata: { namespace, name }, spec },
          { signal },
        );
      }
      const volumes = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
      await createPod("p", { volumes });
      await runs("p");
      const disks = () => cloud.disks().length;
      expect(disks()).toBe(names.length);
      await deletePod("p");
      for (const name of names)
        await kube.delete(resources.persistentVolumeClaims, { namespace, name }, { signal });
      await until("volumes and disks are gone", async () => {
        const { items } = await kube.list(resources.persistentVolumes, { signal });
        return items.length === 0 && disks() === 0;
      });
    },
    { logger },
  );
  const said = logger.lines.slice(saidBefore).filter(({ level }) => level === "warn" || level === "error");
  expect(said.map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`)).toEqual([]);
});
