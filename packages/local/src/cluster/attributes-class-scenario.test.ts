/** A VolumeAttributesClass from the claim to the disk: the cluster in one process, on the virtual clock. */
import { resources } from "@longshore/kube";
import { expect, it } from "vitest";
import { clusterPlugin } from "../layout/plugins.ts";
import { onPodVolumesCluster } from "../testing/pod-volumes-cluster.ts";

const signal = new AbortController().signal;
const ref = { namespace: "default", name: "c" };
const { driverName } = clusterPlugin("aws-ebs");

it("a new volume has the attributes of its claim's class and is not modified again; another class modifies it once (controllers.md B4)", () =>
  onPodVolumesCluster(async ({ cluster, clock, until, createPod, runs }) => {
    const { kube, cloud } = cluster;
    const storageClass = { metadata: { name: "csi" }, provisioner: driverName };
    await kube.create(resources.storageClasses, storageClass, { signal });
    for (const [name, iops] of [
      ["silver", "4000"],
      ["gold", "8000"],
    ] as const) {
      const attributes = { metadata: { name }, driverName, parameters: { iops } };
      await kube.create(resources.volumeAttributesClasses, attributes, { signal });
    }
    const spec = {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      storageClassName: "csi",
      volumeAttributesClassName: "silver",
    };
    await kube.create(resources.persistentVolumeClaims, { metadata: ref, spec }, { signal });
    await createPod("p", { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "c" } }] });
    await runs("p");
    const inForce = async () =>
      (await kube.get(resources.persistentVolumeClaims, ref, { signal }))?.status
        ?.currentVolumeAttributesClassName;
    const modifications = async () =>
      (await cloud.calls(0, signal)).filter(({ op }) => op === "modifyDisk").length;
    await clock.sleep(600_000, signal);
    expect([await inForce(), await modifications()]).toEqual(["silver", 0]);

    const body = { spec: { volumeAttributesClassName: "gold" } };
    await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
    await until("the other class is in force", async () => (await inForce()) === "gold");
    expect(await modifications()).toBe(1);
  }));
