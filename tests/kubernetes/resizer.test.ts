/**
 * Kubernetes' own expand controller hands migrated volumes over to the resizers of their drivers, which talk to the
 * real API server with no more than the rights of the reference deployment. 1.20 keeps no `allocatedResources`, so
 * that this is the classic sequence throughout.
 */
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CsiConnection,
  type CsiServer,
  CsiStatusError,
  grpcConnector,
  grpcListener,
  PluginCapability_Service_Type as Service,
} from "@longshore/csi";
import { type HttpKubeClient, type PersistentVolumeSpec, resources } from "@longshore/kube";
import { startResizer } from "@longshore/sidecars";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ControlPlane,
  connectAs,
  eventually,
  grant,
  type Provider,
  realEnv,
  signal,
  startControlPlane,
  startProvider,
} from "./support/index.ts";

const namespace = "default";
const gib = 1024n ** 3n;
const user = "system:serviceaccount:kube-system:csi-controller";
const gates = {
  CSIMigration: true,
  CSIMigrationAWS: true,
  CSIMigrationGCE: true,
  CSIMigrationAzureDisk: true,
  CSIMigrationOpenStack: true,
};

const diskUri = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d1";
const migrated: readonly (readonly [string, string, string, PersistentVolumeSpec])[] = [
  [
    "ebs",
    "ebs.csi.aws.com",
    "vol-1",
    { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4" } },
  ],
  [
    "gce",
    "pd.csi.storage.gke.io",
    "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd-1",
    { gcePersistentDisk: { pdName: "pd-1", fsType: "ext4" } },
  ],
  [
    "azure",
    "disk.csi.azure.com",
    diskUri,
    { azureDisk: { diskName: "d1", diskURI: diskUri, kind: "Managed" } },
  ],
  ["cinder", "cinder.csi.openstack.org", "c-1", { cinder: { volumeID: "c-1", fsType: "ext4" } }],
];

/** A driver of which only expansion is asked. */
interface Expanding {
  readonly name: string;
  readonly calls: string[];
  nodeExpansionRequired: boolean;
  /** The next call is refused. */
  refusesNext: boolean;
  readonly server: CsiServer;
  readonly csi: CsiConnection;
  readonly resizer: ReturnType<typeof startResizer>;
}

let kubernetes: ControlPlane;
let provider: Provider;
let kube: HttpKubeClient;
let sidecarKube: HttpKubeClient;
const drivers = new Map<string, Expanding>();

beforeAll(async () => {
  [kubernetes, provider] = await Promise.all([
    startControlPlane({
      featureGates: gates,
      kcmFeatureGates: gates,
      controllerManager: {
        controllers: [
          "persistentvolume-binder",
          "persistentvolume-expander",
          "serviceaccount",
          "serviceaccount-token",
        ],
      },
      users: [{ name: user }],
    }),
    startProvider([]),
  ]);
  kube = await connectAs(kubernetes);
  await grant(kubernetes, user, "resizer");
  sidecarKube = await connectAs(kubernetes, user);
  for (const [key, name] of migrated) drivers.set(key, await startDriver(key, name));
  await kube.create(
    resources.storageClasses,
    { metadata: { name: "grows" }, provisioner: "none", allowVolumeExpansion: true },
    { signal },
  );
});
afterAll(async () => {
  for (const { resizer, csi, server } of drivers.values()) {
    await resizer.stop();
    csi.close();
    await server.close();
  }
  await Promise.all([kube?.close(), sidecarKube?.close()]);
  await Promise.all([kubernetes?.stop(), provider?.stop()]);
});

async function startDriver(key: string, name: string): Promise<Expanding> {
  const socket = `${provider.directory}/${key}.sock`;
  const calls: string[] = [];
  const server = await grpcListener(realEnv).serve(socket, {
    identity: {
      getPluginInfo: async () => ({ name, vendorVersion: "test" }),
      probe: async () => ({ ready: true }),
      getPluginCapabilities: async () => ({
        capabilities: [{ type: { case: "service", value: { type: Service.CONTROLLER_SERVICE } } }],
      }),
    },
    controller: {
      controllerGetCapabilities: async () => ({
        capabilities: [{ type: { case: "rpc", value: { type: ControllerRpc.EXPAND_VOLUME } } }],
      }),
      controllerExpandVolume: async ({ volumeId, capacityRange }) => {
        const capacityBytes = capacityRange?.requiredBytes ?? 0n;
        calls.push(`${volumeId} ${capacityBytes / gib}Gi`);
        if (driver.refusesNext) {
          driver.refusesNext = false;
          throw new CsiStatusError("INTERNAL", "as the test asked");
        }
        return { capacityBytes, nodeExpansionRequired: driver.nodeExpansionRequired };
      },
    },
  });
  const csi = grpcConnector(realEnv).connect(socket);
  const backoff = { initialMs: 100, maximumMs: 1000 };
  const resizer = startResizer({ ...realEnv, kube: sidecarKube, csi }, { backoff });
  const driver: Expanding = {
    name,
    calls,
    nodeExpansionRequired: true,
    refusesNext: false,
    server,
    csi,
    resizer,
  };
  return driver;
}

function driverOf(key: string): Expanding {
  const driver = drivers.get(key);
  if (driver === undefined) throw new Error(`no driver ${key}`);
  return driver;
}

const claimOf = (name: string) => kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });

async function bindClaim(name: string, source: PersistentVolumeSpec): Promise<void> {
  const accessModes = ["ReadWriteOnce"];
  await kube.create(
    resources.persistentVolumes,
    {
      metadata: { name: `pv-${name}` },
      spec: {
        ...source,
        accessModes,
        capacity: { storage: "1Gi" },
        storageClassName: "grows",
        persistentVolumeReclaimPolicy: "Retain",
      },
    },
    { signal },
  );
  await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { namespace, name },
      spec: {
        accessModes,
        resources: { requests: { storage: "1Gi" } },
        storageClassName: "grows",
        volumeName: `pv-${name}`,
      },
    },
    { signal },
  );
  await eventually(`${name} is bound`, async () => (await claimOf(name))?.status?.phase === "Bound");
}

async function ask(name: string, storage: string): Promise<void> {
  const body = { spec: { resources: { requests: { storage } } } };
  await kube.patch(
    resources.persistentVolumeClaims,
    { namespace, name },
    { type: "merge", body },
    { signal },
  );
}

const conditionsOf = async (name: string) =>
  ((await claimOf(name))?.status?.conditions ?? []).map(({ type }) => type);

const reasonsOf = async (name: string) => {
  const { items } = await kube.list(resources.events, { namespace, signal });
  return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason }) => reason);
};

describe.each(migrated)("a migrated volume: %s", (key, driverName, handle, source) => {
  test("is handed to the resizer of its driver, which leaves the file system to the kubelet", async () => {
    await bindClaim(key, source);
    await ask(key, "3Gi");
    await eventually(`the node's turn`, async () =>
      (await conditionsOf(key)).includes("FileSystemResizePending"),
    );
    const claim = await claimOf(key);
    expect(claim?.metadata.annotations?.["volume.kubernetes.io/storage-resizer"]).toBe(driverName);
    expect(claim?.status?.capacity).toEqual({ storage: "1Gi" });
    expect(await conditionsOf(key)).toEqual(["FileSystemResizePending"]);
    const volume = await kube.get(resources.persistentVolumes, { name: `pv-${key}` }, { signal });
    expect(volume?.spec).toMatchObject({ ...source, capacity: { storage: "3Gi" } });
    expect(volume?.spec?.csi).toBeUndefined();
    expect(driverOf(key).calls).toEqual([`${handle} 3Gi`]);
    await eventually("the events are written", async () => {
      const reasons = await reasonsOf(key);
      return ["ExternalExpanding", "Resizing", "FileSystemResizeRequired"].every((one) =>
        reasons.includes(one),
      );
    });
  });

  test("is finished by the resizer where nothing is left to the kubelet, a failure on the way", async () => {
    const driver = driverOf(key);
    driver.nodeExpansionRequired = false;
    driver.refusesNext = true;
    // Another claim: the expand controller of 1.20 crashes when its annotation, which is there from the first
    // expansion of a claim, meets a write of the resizer.
    const name = `${key}-finished`;
    await bindClaim(name, source);
    await ask(name, "5Gi");
    await eventually("the claim has what it asks for", async () => {
      return (await claimOf(name))?.status?.capacity?.storage === "5Gi";
    });
    expect(await conditionsOf(name)).toEqual([]);
    expect(driver.calls.slice(1)).toEqual([`${handle} 5Gi`, `${handle} 5Gi`]);
    await eventually("the events are written", async () => {
      const reasons = await reasonsOf(name);
      return ["VolumeResizeFailed", "VolumeResizeSuccessful"].every((one) => reasons.includes(one));
    });
  });
});

test("a CSI volume, which the expand controller leaves alone", async () => {
  await bindClaim("csi", { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-csi" } });
  await ask("csi", "2Gi");
  await eventually("the claim has what it asks for", async () => {
    return (await claimOf("csi"))?.status?.capacity?.storage === "2Gi";
  });
  expect(driverOf("ebs").calls.at(-1)).toBe("vol-csi 2Gi");
});
