/**
 * Kubernetes' own persistent-volume controller with our provisioner for each of four drivers that in-tree plugins
 * migrate to, over gRPC, and with no more than the rights that the reference deployment grants: claims of in-tree
 * classes, of the drivers' own classes, clones, delayed binding, deletion, and claims from before the migration.
 */
import { type CsiConnection, type CsiServer, grpcConnector, grpcListener } from "@longshore/csi";
import {
  type HttpKubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { startProvisioner } from "@longshore/sidecars";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { driverKind } from "../../packages/reference-driver/src/driver/driver-kinds.ts";
import { createReferenceDriver } from "../../packages/reference-driver/src/driver/index.ts";
import {
  type ControlPlane,
  connectAs,
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

interface Plugin {
  readonly plugin: string;
  readonly driverName: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The field of a volume that the in-tree plugin's source is in, and in it what names the disk. */
  readonly source: "awsElasticBlockStore" | "gcePersistentDisk" | "azureDisk" | "cinder";
}

const plugins: readonly Plugin[] = [
  {
    plugin: "kubernetes.io/aws-ebs",
    driverName: "ebs.csi.aws.com",
    parameters: { type: "gp2" },
    source: "awsElasticBlockStore",
  },
  {
    plugin: "kubernetes.io/gce-pd",
    driverName: "pd.csi.storage.gke.io",
    parameters: { type: "pd-standard" },
    source: "gcePersistentDisk",
  },
  {
    plugin: "kubernetes.io/azure-disk",
    driverName: "disk.csi.azure.com",
    parameters: { kind: "Managed", skuName: "Standard_LRS" },
    source: "azureDisk",
  },
  {
    plugin: "kubernetes.io/cinder",
    driverName: "cinder.csi.openstack.org",
    parameters: {},
    source: "cinder",
  },
];
const gates = {
  CSIMigration: true,
  CSIMigrationAWS: true,
  CSIMigrationGCE: true,
  CSIMigrationAzureDisk: true,
  CSIMigrationOpenStack: true,
};
const user = "system:serviceaccount:kube-system:csi-controller";
const node = machine("node-1");
const namespace = "default";
const protection = "external-provisioner.volume.kubernetes.io/finalizer";

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let sidecarKube: HttpKubeClient;
const servers: CsiServer[] = [];
const connections: CsiConnection[] = [];
const provisioners: Component[] = [];

beforeAll(async () => {
  // Without the gates at first: claims come that the in-tree code cannot serve, for there is no provider.
  const controllerManager = {
    featureGates: Object.fromEntries(Object.keys(gates).map((gate) => [gate, false])),
  };
  [kubernetes, provider] = await Promise.all([
    startControlPlane({ featureGates: gates, controllerManager, users: [{ name: user }] }),
    startProvider([node]),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, user, "provisioner");
  sidecarKube = await connectAs(kubernetes, user);
  const labels: Record<string, string> = {};
  const drivers = plugins.map(({ driverName }) => {
    const kind = driverKind(driverName);
    const topologyKeys = kind.topologyKey === undefined ? [] : [kind.topologyKey];
    for (const key of topologyKeys) labels[key] = zone;
    return { name: driverName, nodeID: kind.nodeIdOf(node), topologyKeys };
  });
  await kube.create(resources.nodes, { metadata: { name: node.nodeName, labels } }, { signal });
  await kube.create(resources.csiNodes, { metadata: { name: node.nodeName }, spec: { drivers } }, { signal });
  for (const [index, { driverName }] of plugins.entries()) {
    const cloud = provider.cloud.forCaller({
      provider: driverKind(driverName).provider,
      path: "csi",
      component: driverName,
    });
    const services = createReferenceDriver(
      { ...realEnv, host: provider.host, cloud },
      { driverName, services: "controller" },
    );
    const socket = `${provider.directory}/csi-${index}.sock`;
    servers.push(await grpcListener(realEnv).serve(socket, services));
    const csi = grpcConnector(realEnv).connect(socket);
    connections.push(csi);
    const backoff = { initialMs: 100, maximumMs: 1000 };
    provisioners.push(startProvisioner({ ...realEnv, kube: sidecarKube, csi }, { backoff }));
  }
});
afterAll(async () => {
  await Promise.all(provisioners.map((provisioner) => provisioner.stop()));
  for (const connection of connections) connection.close();
  await Promise.all(servers.map((server) => server.close()));
  await Promise.all([kube?.close(), sidecarKube?.close()]);
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

function createClass(name: string, over: Partial<StorageClass> & Pick<StorageClass, "provisioner">) {
  return kube.create(resources.storageClasses, { metadata: { name }, ...over }, { signal });
}

function createClaim(
  name: string,
  storageClassName: string,
  spec: Partial<PersistentVolumeClaim["spec"]> = {},
): Promise<Stored<PersistentVolumeClaim>> {
  return kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name, namespace },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName,
        resources: { requests: { storage: "1Gi" } },
        ...spec,
      },
    },
    { signal },
  );
}

const getClaim = (name: string) =>
  kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
const getVolume = (name: string) => kube.get(resources.persistentVolumes, { name }, { signal });

/** The claim's volume, once both are bound and the claim has one finalizer left. */
async function boundVolume(name: string): Promise<Stored<PersistentVolume>> {
  return eventually(`${name} is bound`, async () => {
    const claim = await getClaim(name);
    if (claim?.status?.phase !== "Bound" || claim.metadata.finalizers?.length !== 1) return undefined;
    const pv = await getVolume(claim.spec?.volumeName ?? "");
    return pv?.status?.phase === "Bound" ? pv : undefined;
  });
}

/** Deletes the claim and waits for the end of its volume. */
async function deleteWithVolume(name: string): Promise<void> {
  const volumeName = (await getClaim(name))?.spec?.volumeName ?? "";
  await kube.delete(resources.persistentVolumeClaims, { name, namespace }, { signal });
  await eventually(`${name} and its volume are gone`, async () => {
    return (await getClaim(name)) === undefined && (await getVolume(volumeName)) === undefined;
  });
}

const disks = () => provider.cloud.disks();
const short = (driverName: string) => driverName.replaceAll(".", "-");

describe("claims from before the migration", () => {
  test("wait for the persistent-volume controller of their plugin, and are taken over with the gates", async () => {
    for (const { driverName, plugin, parameters } of plugins) {
      await createClass(`in-tree-${short(driverName)}`, {
        provisioner: plugin,
        parameters: { ...parameters },
      });
      await createClaim(`early-${short(driverName)}`, `in-tree-${short(driverName)}`);
    }
    for (const { driverName, plugin } of plugins) {
      await eventually(`the claim is the plugin's of ${driverName}`, async () => {
        const claim = await getClaim(`early-${short(driverName)}`);
        return claim?.metadata.annotations?.["volume.beta.kubernetes.io/storage-provisioner"] === plugin;
      });
    }
    expect(disks()).toEqual([]);
    await kubernetes.startControllerManager({ featureGates: gates });
    for (const { driverName, plugin, source } of plugins) {
      const pv = await boundVolume(`early-${short(driverName)}`);
      expect(pv.spec?.[source]).toBeDefined();
      expect(pv.metadata.annotations).toMatchObject({
        "pv.kubernetes.io/provisioned-by": plugin,
        "pv.kubernetes.io/migrated-to": driverName,
      });
      // Marked first and rewritten a moment later, unless its volume comes between: either form is served.
      const { annotations = {} } = (await getClaim(`early-${short(driverName)}`))?.metadata ?? {};
      const migratedTo = annotations["pv.kubernetes.io/migrated-to"];
      const asked = annotations["volume.beta.kubernetes.io/storage-provisioner"];
      expect([asked, migratedTo]).toContain(driverName);
      expect([plugin, driverName]).toContain(asked);
    }
    expect(disks()).toHaveLength(plugins.length);
  });

  test("take their disks with them", async () => {
    for (const { driverName } of plugins) await deleteWithVolume(`early-${short(driverName)}`);
    expect(disks()).toEqual([]);
  });
});

describe.each(plugins)("$driverName", ({ driverName, plugin, source }) => {
  const name = short(driverName);

  test("a claim of the in-tree class gets an in-tree volume, and a clone of it", async () => {
    await createClaim(`migrated-${name}`, `in-tree-${name}`);
    const pv = await boundVolume(`migrated-${name}`);
    expect(pv.spec?.[source]).toBeDefined();
    expect(pv.spec?.csi).toBeUndefined();
    expect(pv.metadata.annotations?.["pv.kubernetes.io/provisioned-by"]).toBe(plugin);
    expect((await getClaim(`migrated-${name}`))?.metadata.annotations).toMatchObject({
      "volume.beta.kubernetes.io/storage-provisioner": driverName,
    });
    const dataSource = { kind: "PersistentVolumeClaim", name: `migrated-${name}` };
    await createClaim(`clone-${name}`, `in-tree-${name}`, { dataSource });
    const clone = await boundVolume(`clone-${name}`);
    expect(clone.spec?.[source]).toBeDefined();
    expect(clone.spec?.[source]).not.toEqual(pv.spec?.[source]);
    expect(disks()).toHaveLength(2);
    const cloning = "provisioner.storage.kubernetes.io/cloning-protection";
    expect((await getClaim(`migrated-${name}`))?.metadata.finalizers).toContain(cloning);
  });

  test("both go with their claims, the source first", async () => {
    await deleteWithVolume(`migrated-${name}`);
    await deleteWithVolume(`clone-${name}`);
    expect(disks()).toEqual([]);
  });

  test("a claim of the driver's own class waits for its node, and gets a CSI volume there", async () => {
    await createClass(`csi-${name}`, { provisioner: driverName, volumeBindingMode: "WaitForFirstConsumer" });
    await createClaim(`own-${name}`, `csi-${name}`, { volumeMode: "Block" });
    // The scheduler's part.
    const annotations = { "volume.kubernetes.io/selected-node": node.nodeName };
    const body = { metadata: { annotations } };
    const ref = { name: `own-${name}`, namespace };
    await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
    const pv = await boundVolume(`own-${name}`);
    expect(pv.spec).toMatchObject({ volumeMode: "Block", csi: { driver: driverName } });
    const key = driverKind(driverName).topologyKey;
    expect(pv.spec?.nodeAffinity?.required?.nodeSelectorTerms).toEqual([
      { matchExpressions: [{ key, operator: "In", values: [zone] }] },
    ]);
    await deleteWithVolume(`own-${name}`);
    expect(disks()).toEqual([]);
  });

  test("a volume that is to be retained stays", async () => {
    await createClass(`retain-${name}`, { provisioner: driverName, reclaimPolicy: "Retain" });
    await createClaim(`kept-${name}`, `retain-${name}`);
    const { metadata } = await boundVolume(`kept-${name}`);
    // The finalizer follows the policy.
    const ref = { name: metadata.name };
    const setPolicy = (persistentVolumeReclaimPolicy: string) => {
      const body = { spec: { persistentVolumeReclaimPolicy } };
      return kube.patch(resources.persistentVolumes, ref, { type: "merge", body }, { signal });
    };
    const isProtected = async () =>
      (await getVolume(metadata.name))?.metadata.finalizers?.includes(protection) ?? false;
    expect(await isProtected()).toBe(false);
    await setPolicy("Delete");
    await eventually("protected", isProtected);
    await setPolicy("Retain");
    await eventually("not protected", async () => !(await isProtected()));
    await kube.delete(resources.persistentVolumeClaims, { name: `kept-${name}`, namespace }, { signal });
    await eventually("released", async () => (await getVolume(metadata.name))?.status?.phase === "Released");
    expect(disks()).toHaveLength(1);
    await setPolicy("Delete");
    await eventually("gone", async () => (await getVolume(metadata.name)) === undefined);
    expect(disks()).toEqual([]);
  });
});

test("claims that are made while the API server goes away and comes back all get one disk each", async () => {
  const names = Array.from({ length: 20 }, (_, n) => `restart-${n}`);
  const storageClass = `in-tree-${short("ebs.csi.aws.com")}`;
  for (const name of names.slice(0, 10)) await createClaim(name, storageClass);
  await kubernetes.restartApiServer();
  for (const name of names.slice(10)) {
    await eventually(`${name} is created`, () => createClaim(name, storageClass).catch(() => undefined));
  }
  for (const name of names) await boundVolume(name);
  expect(disks()).toHaveLength(names.length);
  await Promise.all(names.map(deleteWithVolume));
  expect(disks()).toEqual([]);
});
