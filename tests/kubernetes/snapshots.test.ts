/**
 * The snapshot controller, and a snapshotter and a provisioner with the reference driver over gRPC, against the real
 * API server and Kubernetes' own persistent-volume controller, each with no more than the rights that the reference
 * deployments grant: snapshots of volumes of the driver and of its in-tree plugin, restored, protected, deleted, and
 * found at the driver.
 */
import { fileURLToPath } from "node:url";
import { type CsiConnection, type CsiServer, grpcConnector, grpcListener } from "@longshore/csi";
import { type HttpKubeClient, resources } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { startProvisioner, startSnapshotter } from "@longshore/sidecars";
import { startSnapshotController } from "@longshore/sidecars/snapshot-controller";
import { snapshotCrdsUrl, snapshotResources, type VolumeSnapshot } from "@longshore/storage";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDefinitions } from "../../packages/apiserver/src/http/read-definitions.ts";
import { createReferenceDriver } from "../../packages/reference-driver/src/driver/index.ts";
import {
  type ControlPlane,
  connectAs,
  createWithStatus,
  eventually,
  grant,
  machine,
  type Provider,
  realEnv,
  signal,
  startControlPlane,
  startProvider,
  zone,
} from "./support/index.ts";

const driverName = "ebs.csi.aws.com";
const topologyKey = "topology.ebs.csi.aws.com/zone";
const namespace = "default";
const users = {
  controller: "system:serviceaccount:kube-system:snapshot-controller",
  sidecars: "system:serviceaccount:kube-system:csi-controller",
};
const { volumeSnapshots, volumeSnapshotContents, volumeSnapshotClasses } = snapshotResources;
const { volumeGroupSnapshots, volumeGroupSnapshotClasses } = snapshotResources;
const claimFinalizer = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let server: CsiServer;
let csi: CsiConnection;
const clients: HttpKubeClient[] = [];
const components: Component[] = [];

beforeAll(async () => {
  const node = machine("node-1");
  [kubernetes, provider] = await Promise.all([
    startControlPlane({
      controllerManager: {},
      users: Object.values(users).map((name) => ({ name })),
    }),
    startProvider([node]),
  ]);
  kube = await connectAs(kubernetes);
  const backoff = { initialMs: 100, maximumMs: 1000 };
  await grant(kubernetes, users.controller, "snapshot-controller");
  await grant(kubernetes, users.sidecars, "snapshotter", "provisioner", "snapshot-sources");
  const controllerKube = await connectAs(kubernetes, users.controller);
  const sidecarKube = await connectAs(kubernetes, users.sidecars);
  clients.push(kube, controllerKube, sidecarKube);
  const drivers = [{ name: driverName, nodeID: node.instanceId, topologyKeys: [topologyKey] }];
  const labels = { [topologyKey]: zone };
  await kube.create(resources.nodes, { metadata: { name: node.nodeName, labels } }, { signal });
  await kube.create(resources.csiNodes, { metadata: { name: node.nodeName }, spec: { drivers } }, { signal });

  const cloud = provider.cloud.forCaller({ path: "csi", component: driverName });
  const services = createReferenceDriver(
    { ...realEnv, host: provider.host, cloud },
    { driverName, services: "controller" },
  );
  const socket = `${provider.directory}/csi.sock`;
  server = await grpcListener(realEnv).serve(socket, services);
  csi = grpcConnector(realEnv).connect(socket);
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const definition of await readDefinitions([fileURLToPath(snapshotCrdsUrl)])) {
    expect((await kubernetes.call("POST", path, definition)).status).toBe(201);
  }
  await eventually("the kinds are served", async () => {
    const { body } = await kubernetes.call("GET", "/apis/snapshot.storage.k8s.io/v1");
    return body.resources?.length === 5;
  });
  components.push(
    startSnapshotController({ ...realEnv, kube: controllerKube }, { backoff, groupSnapshots: true }),
    startSnapshotter({ ...realEnv, kube: sidecarKube, csi }, { backoff, groupSnapshots: true }),
    startProvisioner({ ...realEnv, kube: sidecarKube, csi }, { backoff }),
  );
  await kube.create(
    resources.storageClasses,
    { metadata: { name: "gp2" }, provisioner: driverName, volumeBindingMode: "Immediate" },
    { signal },
  );
  const annotations = { "snapshot.storage.kubernetes.io/is-default-class": "true" };
  await kube.create(
    volumeSnapshotClasses,
    { metadata: { name: "ebs", annotations }, driver: driverName, deletionPolicy: "Delete" },
    { signal },
  );
  await kube.create(
    volumeGroupSnapshotClasses,
    { metadata: { name: "ebs" }, driver: driverName, deletionPolicy: "Delete" },
    { signal },
  );
});
afterAll(async () => {
  await Promise.all(components.map((component) => component.stop()));
  csi?.close();
  await server?.close();
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

const claimOf = (name: string) => kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
const snapshotOf = (name: string) => kube.get(volumeSnapshots, { name, namespace }, { signal });
const contents = async () => (await kube.list(volumeSnapshotContents, { signal })).items;
const atProvider = () => provider.cloud.forCaller({ path: "csi", component: "test" }).listSnapshots(signal);

/** Makes a claim of the class; returns the handle of its volume once it is bound. */
async function aBoundClaim(name: string, dataSource?: object): Promise<string> {
  await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name, namespace },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "gp2",
        resources: { requests: { storage: "1Gi" } },
        ...(dataSource === undefined ? {} : { dataSource: dataSource as never }),
      },
    },
    { signal },
  );
  return eventually(`${name} is bound`, async () => {
    const claim = await claimOf(name);
    if (claim?.status?.phase !== "Bound") return undefined;
    const volume = { name: claim.spec?.volumeName ?? "" };
    const pv = await kube.get(resources.persistentVolumes, volume, { signal });
    return pv?.spec?.csi?.volumeHandle;
  });
}

const aSnapshot = (name: string, source: VolumeSnapshot["spec"]["source"]) =>
  kube.create(volumeSnapshots, { metadata: { name, namespace }, spec: { source } }, { signal });
const isReady = (name: string) =>
  eventually(`${name} is ready`, async () => {
    const snapshot = await snapshotOf(name);
    return snapshot?.status?.readyToUse === true ? snapshot : undefined;
  });
const isGone = (name: string) =>
  eventually(`${name} is gone`, async () => ((await snapshotOf(name)) === undefined ? true : undefined));
const remove = (name: string) => kube.delete(volumeSnapshots, { name, namespace }, { signal });

describe("snapshots on the real API server", () => {
  it("are made, restored into a new claim, and deleted with what the driver has", async () => {
    const volumeId = await aBoundClaim("data");
    const { metadata } = await aSnapshot("first", { persistentVolumeClaimName: "data" });
    const snapshot = await isReady("first");
    expect(snapshot.spec.volumeSnapshotClassName).toBe("ebs");
    expect(snapshot.status).toMatchObject({
      boundVolumeSnapshotContentName: `snapcontent-${metadata.uid}`,
      restoreSize: "1Gi",
    });
    expect(await atProvider()).toMatchObject([{ name: `snapshot-${metadata.uid}`, diskId: volumeId }]);
    const [content] = await contents();
    expect(content?.spec).toMatchObject({
      source: { volumeHandle: volumeId },
      sourceVolumeMode: "Filesystem",
    });
    await eventually("the claim is let go", async () =>
      (await claimOf("data"))?.metadata.finalizers?.includes(claimFinalizer) ? undefined : true,
    );

    const dataSource = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "first" };
    const restoredId = await aBoundClaim("restored", dataSource);
    expect(restoredId).not.toBe(volumeId);
    const [made] = await atProvider();
    expect(provider.cloud.disks().find(({ id }) => id === restoredId)).toMatchObject({
      source: { kind: "snapshot", id: made?.id },
    });

    await remove("first");
    await isGone("first");
    expect(await contents()).toEqual([]);
    expect(await atProvider()).toEqual([]);
    // What was made from it has nothing to do with it any more.
    expect(provider.cloud.disks().map(({ id }) => id)).toContain(restoredId);
  });

  it("stay while a volume is being made from them", async () => {
    await aBoundClaim("source");
    await aSnapshot("busy", { persistentVolumeClaimName: "source" });
    await isReady("busy");
    // A claim without a provisioner stays pending.
    await kube.create(
      resources.persistentVolumeClaims,
      {
        metadata: { name: "pending", namespace },
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: "unserved",
          resources: { requests: { storage: "1Gi" } },
          dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "busy" },
        },
      },
      { signal },
    );
    // The controller has seen it once it says so.
    await remove("busy");
    await eventually("the event is written", async () => {
      const { items } = await kube.list(resources.events, { signal, namespace });
      return items.some(({ reason, involvedObject }) => {
        return reason === "SnapshotDeletePending" && involvedObject.name === "busy";
      });
    });
    expect(await snapshotOf("busy")).toBeDefined();
    expect(await atProvider()).toHaveLength(1);
    await kube.delete(resources.persistentVolumeClaims, { name: "pending", namespace }, { signal });
    await isGone("busy");
    expect(await atProvider()).toEqual([]);
  });

  it("of a volume of the in-tree plugin are the driver's, too", async () => {
    const diskId = await provider.makeDisk("in-tree");
    const claimRef = { name: "in-tree", namespace };
    await kube.create(
      resources.persistentVolumes,
      {
        metadata: { name: "in-tree" },
        spec: {
          capacity: { storage: "1Gi" },
          accessModes: ["ReadWriteOnce"],
          persistentVolumeReclaimPolicy: "Retain",
          storageClassName: "none",
          claimRef,
          awsElasticBlockStore: { volumeID: `aws://${zone}/${diskId}`, fsType: "ext4" },
        },
      },
      { signal },
    );
    await kube.create(
      resources.persistentVolumeClaims,
      {
        metadata: claimRef,
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: "none",
          volumeName: "in-tree",
          resources: { requests: { storage: "1Gi" } },
        },
      },
      { signal },
    );
    await eventually("bound", async () =>
      (await claimOf("in-tree"))?.status?.phase === "Bound" ? true : undefined,
    );
    await aSnapshot("of-in-tree", { persistentVolumeClaimName: "in-tree" });
    await isReady("of-in-tree");
    expect(await atProvider()).toMatchObject([{ diskId }]);
    await remove("of-in-tree");
    await isGone("of-in-tree");
    expect(await atProvider()).toEqual([]);
  });

  it("that the driver has already are bound, and kept if they are to be", async () => {
    const diskId = await provider.makeDisk("by-hand");
    const cloud = provider.cloud.forCaller({ path: "csi", component: "test" });
    const { id } = await cloud.createSnapshot({ name: "by-hand", diskId }, signal);
    await createWithStatus(kube, volumeSnapshotContents, {
      metadata: { name: "by-hand" },
      spec: {
        driver: driverName,
        deletionPolicy: "Retain",
        source: { snapshotHandle: id },
        volumeSnapshotRef: { name: "found", namespace },
      },
    });
    const { metadata } = await aSnapshot("found", { volumeSnapshotContentName: "by-hand" });
    const snapshot = await isReady("found");
    expect(snapshot.status).toMatchObject({ boundVolumeSnapshotContentName: "by-hand", restoreSize: "1Gi" });
    const [content] = await contents();
    expect(content?.spec.volumeSnapshotRef.uid).toBe(metadata.uid);
    await remove("found");
    await isGone("found");
    await kube.delete(volumeSnapshotContents, { name: "by-hand" }, { signal });
    await eventually("the content is gone", async () => ((await contents()).length === 0 ? true : undefined));
    expect(await atProvider()).toMatchObject([{ id }]);
  });

  it("of a claim without a volume are refused until it has one", async () => {
    await aSnapshot("early", { persistentVolumeClaimName: "late" });
    const message = async () => (await snapshotOf("early"))?.status?.error?.message;
    await eventually("refused", async () => (await message())?.includes("not found"));
    await aBoundClaim("late");
    const snapshot = await isReady("early");
    expect(snapshot.status?.error).toBeUndefined();
    await remove("early");
    await isGone("early");
  });

  it("of a group come at once, and go as a whole", async () => {
    const before = (await atProvider()).length;
    const labels = { app: "db" };
    for (const name of ["group-a", "group-b"]) {
      await aBoundClaim(name);
      const patch = { type: "merge", body: { metadata: { labels } } } as const;
      await kube.patch(resources.persistentVolumeClaims, { name, namespace }, patch, { signal });
    }
    const ref = { name: "group", namespace };
    const source = { selector: { matchLabels: labels } };
    const spec = { source, volumeGroupSnapshotClassName: "ebs" };
    await kube.create(volumeGroupSnapshots, { metadata: ref, spec }, { signal });
    await eventually("the group is ready", async () => {
      const group = await kube.get(volumeGroupSnapshots, ref, { signal });
      return group?.status?.readyToUse === true ? true : undefined;
    });
    const { items } = await kube.list(volumeSnapshots, { signal });
    const sources = items.map((member) => member.spec.source.persistentVolumeClaimName);
    expect(sources.sort()).toEqual(["group-a", "group-b"]);
    expect(await atProvider()).toHaveLength(before + 2);
    await kube.delete(volumeGroupSnapshots, ref, { signal });
    await eventually("all of it is gone", async () => {
      const left = await kube.list(volumeSnapshots, { signal });
      return left.items.length === 0 && (await contents()).length === 0 ? true : undefined;
    });
    expect(await atProvider()).toHaveLength(before);
  });
});
