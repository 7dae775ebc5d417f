/**
 * Kubernetes' own attach/detach controller with migration on, our attachers, and the reference driver under the names of
 * the four drivers that take over: EBS, GCE PD, Azure Disk and Cinder, as volumes of claims and inline in pods.
 */
import { type CsiConnection, type CsiServer, grpcConnector, grpcListener } from "@longshore/csi";
import {
  type HttpKubeClient,
  type PersistentVolumeSpec,
  type Pod,
  resources,
  type Stored,
} from "@longshore/kube";
import { startAttacher } from "@longshore/sidecars";
import { attachmentName } from "@longshore/storage";
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
} from "./support/index.ts";

const node = machine("node-1");
const user = "system:serviceaccount:kube-system:csi-controller";
const namespace = "default";

/** Every plugin that has a driver here, and how an in-tree object names a disk. */
const plugins: readonly {
  readonly inTree: string;
  readonly gate: string;
  readonly driver: string;
  /** The source in a PersistentVolume; in a pod it is the same. */
  source(diskId: string, diskName: string, handle: string): PersistentVolumeSpec;
}[] = [
  {
    inTree: "kubernetes.io/aws-ebs",
    gate: "CSIMigrationAWS",
    driver: "ebs.csi.aws.com",
    source: (id) => ({ awsElasticBlockStore: { volumeID: id, fsType: "ext4" } }),
  },
  {
    inTree: "kubernetes.io/gce-pd",
    gate: "CSIMigrationGCE",
    driver: "pd.csi.storage.gke.io",
    source: (_, name) => ({ gcePersistentDisk: { pdName: name, fsType: "ext4" } }),
  },
  {
    inTree: "kubernetes.io/azure-disk",
    gate: "CSIMigrationAzureDisk",
    driver: "disk.csi.azure.com",
    source: (_, diskName, diskURI) => ({
      azureDisk: { diskName, diskURI, kind: "Managed", cachingMode: "ReadOnly", fsType: "ext4" },
    }),
  },
  {
    inTree: "kubernetes.io/cinder",
    gate: "CSIMigrationOpenStack",
    driver: "cinder.csi.openstack.org",
    source: (_, __, volumeID) => ({ cinder: { volumeID, fsType: "ext4" } }),
  },
];

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let attacherKube: HttpKubeClient;
const servers: CsiServer[] = [];
const connections: CsiConnection[] = [];
const attachers: ReturnType<typeof startAttacher>[] = [];

beforeAll(async () => {
  const gates = { CSIMigration: true, ...Object.fromEntries(plugins.map(({ gate }) => [gate, true])) };
  [kubernetes, provider] = await Promise.all([
    startControlPlane({
      featureGates: gates,
      kcmFeatureGates: gates,
      controllerManager: true,
      users: [{ name: user }],
    }),
    startProvider([node]),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, user, "attacher");
  attacherKube = await connectAs(kubernetes, user);
  for (const [at, { driver }] of plugins.entries()) {
    const cloud = provider.cloud.forCaller({
      provider: driverKind(driver).provider,
      path: "csi",
      component: driver,
    });
    const services = createReferenceDriver(
      { ...realEnv, host: provider.host, cloud },
      { driverName: driver, services: "controller" },
    );
    const socket = `${provider.directory}/csi-${at}.sock`;
    servers.push(await grpcListener(realEnv).serve(socket, services));
    const csi = grpcConnector(realEnv).connect(socket);
    connections.push(csi);
    attachers.push(startAttacher({ ...realEnv, kube: attacherKube, csi }));
  }
  // The node as its kubelet would have it, with every plugin migrated.
  const { nodeName } = node;
  const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  await kube.create(resources.nodes, { metadata: { name: nodeName, annotations } }, { signal });
  const migrated = plugins.map(({ inTree }) => inTree).join(",");
  const drivers = plugins.map(({ driver }) => ({
    name: driver,
    nodeID: driverKind(driver).nodeIdOf(node),
  }));
  await kube.create(
    resources.csiNodes,
    {
      metadata: { name: nodeName, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated } },
      spec: { drivers },
    },
    { signal },
  );
});
afterAll(async () => {
  await Promise.all(attachers.map((attacher) => attacher.stop()));
  for (const csi of connections) csi.close();
  await Promise.all(servers.map((server) => server.close()));
  await Promise.all([kube?.close(), attacherKube?.close()]);
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

async function createPod(name: string, volume: object): Promise<Stored<Pod>> {
  const pod: Pod = {
    metadata: { name, namespace },
    spec: {
      nodeName: node.nodeName,
      automountServiceAccountToken: false,
      containers: [{ name: "app", image: "none", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", ...volume }],
    },
  };
  return eventually(`pod ${name} may be made`, async () =>
    kube.create(resources.pods, pod, { signal }).catch((error) => {
      // The controller that makes the service account needs a moment.
      if (/serviceaccount/.test(String(error))) return false as const;
      throw error;
    }),
  );
}

const attachmentOf = (driver: string, handle: string) =>
  kube.get(resources.volumeAttachments, { name: attachmentName(handle, driver, node.nodeName) }, { signal });

describe.each(plugins)(
  "a volume of $inTree, which $driver serves,",
  ({ inTree: inTreeName, driver, source }) => {
    const kind = driverKind(driver);
    const short = driver.split(".")[0];

    /** A disk, and what names it. */
    async function disk(name: string) {
      const id = await provider.makeDisk(name, kind.provider);
      const handle = kind.volumeIdOf({ id, name, zone: node.zone, tags: {} });
      return { id, handle, source: source(id, name, handle) };
    }

    /** The pod's volume is attached, and detached when the pod goes. */
    async function livesWithPod(podName: string, handle: string, id: string) {
      const va = await eventually(
        "the volume is attached",
        async () => {
          const now = await attachmentOf(driver, handle);
          return now?.status?.attached === true && now;
        },
        30_000,
      );
      expect(va.spec.attacher).toBe(driver);
      expect(va.metadata.annotations).toMatchObject({
        "csi.alpha.kubernetes.io/node-id": kind.nodeIdOf(node),
      });
      expect(provider.attachedTo(id)).toEqual([node.instanceId]);
      const uniqueName = `kubernetes.io/csi/${driver}^${handle}`;
      await eventually("the controller reports it on the node", async () => {
        const now = await kube.get(resources.nodes, { name: node.nodeName }, { signal });
        return now?.status?.volumesAttached?.some((volume) => volume.name === uniqueName);
      });
      await kube.delete(resources.pods, { namespace, name: podName }, { signal, gracePeriodSeconds: 0 });
      await eventually(
        "the attachment is gone",
        async () => (await attachmentOf(driver, handle)) === undefined,
        30_000,
      );
      expect(provider.attachedTo(id)).toEqual([]);
      return va;
    }

    test("of a claim", async () => {
      const name = `claim-${short}`;
      // Both names of the label: Kubernetes of this version reads the older one.
      const labels = {
        "topology.kubernetes.io/zone": node.zone,
        "failure-domain.beta.kubernetes.io/zone": node.zone,
      };
      const annotations = { "pv.kubernetes.io/provisioned-by": inTreeName };
      const { id, handle, source: inTree } = await disk(name);
      const spec: PersistentVolumeSpec = {
        accessModes: ["ReadWriteOnce"],
        capacity: { storage: "1Gi" },
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "",
        claimRef: { namespace, name },
        ...inTree,
      };
      await kube.create(
        resources.persistentVolumes,
        { metadata: { name, labels, annotations }, spec },
        { signal },
      );
      await kube.create(
        resources.persistentVolumeClaims,
        {
          metadata: { namespace, name },
          spec: {
            accessModes: ["ReadWriteOnce"],
            storageClassName: "",
            volumeName: name,
            resources: { requests: { storage: "1Gi" } },
          },
        },
        { signal },
      );
      await createPod(name, { persistentVolumeClaim: { claimName: name } });
      const va = await livesWithPod(name, handle, id);
      expect(va.spec.source).toEqual({ persistentVolumeName: name });
      const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
      expect(pv?.metadata.annotations).toMatchObject({ "pv.kubernetes.io/migrated-to": driver });
      expect(pv?.metadata.finalizers).toContain(`external-attacher/${driver.replaceAll(".", "-")}`);
      // The object is still the user's: nothing of it was translated in place.
      expect(pv?.spec).toMatchObject(inTree);
      expect(pv?.spec?.csi).toBeUndefined();
    });

    test("inline in a pod", async () => {
      const name = `inline-${short}`;
      const { id, handle, source: inTree } = await disk(name);
      // Without a volume there is no zone: the translation of a GCE disk says so.
      const inlineHandle = handle.replace(`/zones/${node.zone}/`, "/zones/UNSPECIFIED/");
      await createPod(name, inTree);
      const va = await livesWithPod(name, inlineHandle, id);
      expect(va.spec.source.persistentVolumeName).toBeUndefined();
      expect(va.spec.source.inlineVolumeSpec?.csi).toMatchObject({ driver, volumeHandle: inlineHandle });
    });
  },
);

test("no in-tree code has called the provider", async () => {
  const calls = await provider.cloud.calls(0, signal);
  for (const { driver } of plugins) {
    const ops = calls.filter(({ component }) => component === driver).map(({ op }) => op);
    expect(ops).toEqual(expect.arrayContaining(["attachDisk", "detachDisk"]));
  }
  expect(calls.filter(({ path, component }) => path === "in-tree" && component !== "test")).toEqual([]);
});
