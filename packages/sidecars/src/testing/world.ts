/** A cluster without controllers and a driver, in one process under a virtual clock, for tests of the sidecars. */

// Tests stand outside the floors: the embedded API server is the real thing to test against.
import { createApiServer, memoryStore, type readDefinitions } from "@longshore/apiserver";
import { type CsiServices, type InProcessCsi, inProcessCsi } from "@longshore/csi";
import type {
  KubeClient,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeAttachment,
} from "@longshore/kube";
import { resources } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { FakeCloud, type FakeDriverOptions, fakeDriver } from "@longshore/testing/sidecars";
import type { SidecarEnv } from "../common/sidecar-env.ts";

const socket = "/csi/csi.sock";

/** Everything a test needs. */
export interface World {
  readonly clock: VirtualClock;
  readonly kube: KubeClient;
  readonly csi: InProcessCsi;
  readonly cloud: FakeCloud;
  readonly signal: AbortSignal;
  /** Seams of one sidecar; `kube` may be wrapped. */
  env(kube?: KubeClient): SidecarEnv;
  /** Advances the time until `condition` returns something other than `undefined` or `false`. */
  eventually<T>(what: string, condition: () => Promise<T | undefined | false>, withinMs?: number): Promise<T>;
}

/** What kind of world it is. */
export interface WorldOptions {
  /** Services that replace those of the driver, or add to them. */
  readonly extend?: (services: CsiServices, cloud: FakeCloud) => CsiServices;
  /** The version of Kubernetes, e.g. `1.20`; default the newest. */
  readonly emulatedVersion?: string;
  /** Feature gates of the server. */
  readonly featureGates?: Readonly<Record<string, boolean>>;
  /** Custom resources that the server has, as `readDefinitions` returns them. */
  readonly definitions?: Awaited<ReturnType<typeof readDefinitions>>;
}

/** Makes a world with the driver listening. */
export async function sidecarWorld(
  options: FakeDriverOptions = {},
  { extend = (services) => services, ...cluster }: WorldOptions = {},
): Promise<World> {
  const clock = new VirtualClock();
  const runtime: RuntimeEnv = { clock, random: new SeededRandom(7), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, { store: memoryStore(), ...cluster });
  const csi = inProcessCsi({ clock });
  const cloud = new FakeCloud();
  await csi.serve(socket, extend(fakeDriver(cloud, options), cloud));
  const kube = server.client();
  const signal = new AbortController().signal;
  return {
    clock,
    kube,
    csi,
    cloud,
    signal,
    env: (wrapped = kube) => ({ ...runtime, kube: wrapped, csi: csi.connect(socket) }),
    async eventually(what, condition, withinMs = 30 * 60_000) {
      const untilMs = clock.monotonicMs() + withinMs;
      for (;;) {
        await clock.settle();
        const found = await condition();
        if (found !== undefined && found !== false) return found;
        if (clock.monotonicMs() >= untilMs) throw new Error(`not within ${withinMs} ms: ${what}`);
        await clock.advance(250);
      }
    },
  };
}

/** A node with the driver on it. */
export async function addNode({ kube, signal }: World, name: string, zone: string): Promise<void> {
  const labels = { "topology.ebs.csi.aws.com/zone": zone, "topology.kubernetes.io/zone": zone };
  await kube.create(resources.nodes, { metadata: { name, labels } }, { signal });
  const driver = {
    name: "ebs.csi.aws.com",
    nodeID: `i-${name}`,
    topologyKeys: ["topology.ebs.csi.aws.com/zone"],
  };
  await kube.create(resources.csiNodes, { metadata: { name }, spec: { drivers: [driver] } }, { signal });
}

/** A class of the driver, or of the in-tree plugin that migrates to it. */
export const aStorageClass = (over: Partial<StorageClass> = {}): StorageClass => ({
  metadata: { name: "gp2" },
  provisioner: "ebs.csi.aws.com",
  reclaimPolicy: "Delete",
  volumeBindingMode: "Immediate",
  ...over,
});

/** A claim of class `gp2`, annotated for the driver. */
export const aClaim = (
  over: { readonly name?: string; readonly annotations?: Record<string, string> } = {},
): PersistentVolumeClaim => ({
  metadata: {
    name: over.name ?? "data-web-0",
    namespace: "default",
    annotations: over.annotations ?? { "volume.beta.kubernetes.io/storage-provisioner": "ebs.csi.aws.com" },
  },
  spec: {
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    storageClassName: "gp2",
  },
});

/** An in-tree EBS volume. */
export const anInTreeVolume = (
  over: { readonly annotations?: Record<string, string> } = {},
): PersistentVolume => ({
  metadata: {
    name: "pv-1",
    annotations: over.annotations ?? { "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" },
  },
  spec: {
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
    persistentVolumeReclaimPolicy: "Delete",
    awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-9", fsType: "ext4" },
  },
});

/** An attachment of `pv-1` to `node-a`. */
export const anAttachment = (over: Partial<VolumeAttachment["spec"]> = {}): VolumeAttachment => ({
  metadata: { name: "csi-1" },
  spec: {
    attacher: "ebs.csi.aws.com",
    nodeName: "node-a",
    source: { persistentVolumeName: "pv-1" },
    ...over,
  },
});
