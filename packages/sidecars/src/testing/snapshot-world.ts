/** A cluster with the kinds of snapshots, a driver that makes them, and claims of which to make them. */
import { fileURLToPath } from "node:url";
// Tests stand outside the floors: the embedded API server is the real thing to test against.
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import { inProcessCsi } from "@longshore/csi";
import type { KubeClient, KubeObject, PersistentVolume, Stored } from "@longshore/kube";
import { resources } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import {
  snapshotCrdsUrl,
  snapshotResources,
  type VolumeGroupSnapshot,
  type VolumeGroupSnapshotClass,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "@longshore/storage";
import {
  FakeCloud,
  FakeSnapshots,
  type FakeSnapshotsOptions,
  snapshotDriver,
} from "@longshore/testing/sidecars";
import type { World } from "./world.ts";

const socket = "/csi/csi.sock";

/** A world with snapshots. */
export interface SnapshotWorld extends World {
  readonly snapshots: FakeSnapshots;
  snapshot(name: string): Promise<Stored<VolumeSnapshot> | undefined>;
  contents(): Promise<readonly Stored<VolumeSnapshotContent>[]>;
  /** Reasons of the events so far. */
  reasons(): Promise<readonly string[]>;
}

/** Makes a world with the driver listening. `kinds` false: the kinds of snapshots are not installed. */
export async function snapshotWorld(
  options: FakeSnapshotsOptions & {
    readonly kinds?: boolean;
    /** The only version in which kinds of group snapshots are served; default all. */
    readonly groupVersion?: string;
    readonly runtime?: Partial<RuntimeEnv>;
  } = {},
): Promise<SnapshotWorld> {
  const clock = new VirtualClock();
  const runtime: RuntimeEnv = {
    clock,
    random: new SeededRandom(7),
    logger: silentLogger,
    meter: noMeter,
    ...options.runtime,
  };
  const all = options.kinds === false ? [] : await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const definitions = all.map((definition) => inVersion(definition, options.groupVersion));
  const server = createApiServer(runtime, { store: memoryStore(), definitions });
  const csi = inProcessCsi({ clock });
  const cloud = new FakeCloud();
  const snapshots = new FakeSnapshots();
  await csi.serve(socket, snapshotDriver(cloud, snapshots, options));
  const kube = server.client();
  const signal = new AbortController().signal;
  return {
    clock,
    kube,
    csi,
    cloud,
    signal,
    snapshots,
    env: (wrapped: KubeClient = kube) => ({ ...runtime, kube: wrapped, csi: csi.connect(socket) }),
    snapshot: (name) =>
      kube.get(snapshotResources.volumeSnapshots, { namespace: "default", name }, { signal }),
    contents: async () => (await kube.list(snapshotResources.volumeSnapshotContents, { signal })).items,
    reasons: async () =>
      (await kube.list(resources.events, { signal })).items.map(({ reason = "" }) => reason),
    async eventually(what, condition, withinMs = 5 * 60_000) {
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

/** The definition with one version only, where it has that version. */
function inVersion(definition: KubeObject, version: string | undefined): KubeObject {
  const { spec } = definition as KubeObject & { spec: { versions: readonly { name: string }[] } };
  const versions = spec.versions.filter(({ name }) => name === version);
  if (versions.length === 0) return definition;
  const stored = versions.map((each) => ({ ...each, storage: true }));
  return { ...definition, spec: { ...spec, versions: stored } } as KubeObject;
}

/** A claim bound to a volume of its own, in-tree or of the driver. */
export async function addBoundClaim(
  { kube, signal }: World,
  name: string,
  source: Partial<PersistentVolume["spec"]> = {
    csi: { driver: "ebs.csi.aws.com", volumeHandle: `vol-${name}` },
  },
  labels: Record<string, string> = {},
): Promise<void> {
  const claim = await kube.create(
    resources.persistentVolumeClaims,
    {
      metadata: { name, namespace: "default", labels },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        volumeName: `pv-${name}`,
        storageClassName: "gp2",
      },
    },
    { signal },
  );
  const { uid } = claim.metadata;
  const claimRef = { kind: "PersistentVolumeClaim", name, namespace: "default", uid };
  await kube.create(
    resources.persistentVolumes,
    {
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Delete",
        volumeMode: "Filesystem",
        claimRef,
        ...source,
      },
    },
    { signal },
  );
  const body = { status: { phase: "Bound" } };
  const ref = { name, namespace: "default" };
  await kube.patch(
    resources.persistentVolumeClaims,
    ref,
    { type: "merge", body },
    { signal, subresource: "status" },
  );
}

/** The default class of the driver. */
export const aSnapshotClass = (over: Partial<VolumeSnapshotClass> = {}): VolumeSnapshotClass => ({
  metadata: {
    name: "snapshots",
    annotations: { "snapshot.storage.kubernetes.io/is-default-class": "true" },
  },
  driver: "ebs.csi.aws.com",
  deletionPolicy: "Delete",
  ...over,
});

/** A snapshot of the claim `data`. */
export const aSnapshot = (over: Partial<VolumeSnapshot["spec"]> = {}, name = "s"): VolumeSnapshot => ({
  metadata: { name, namespace: "default" },
  spec: { source: { persistentVolumeClaimName: "data" }, ...over },
});

/** The default class of the driver for groups. */
export const aGroupClass = (over: Partial<VolumeGroupSnapshotClass> = {}): VolumeGroupSnapshotClass => ({
  metadata: {
    name: "groups",
    annotations: { "groupsnapshot.storage.kubernetes.io/is-default-class": "true" },
  },
  driver: "ebs.csi.aws.com",
  deletionPolicy: "Delete",
  ...over,
});

/** A group snapshot of the claims with the label `app: db`. */
export const aGroupSnapshot = (over: Partial<VolumeGroupSnapshot["spec"]> = {}): VolumeGroupSnapshot => ({
  metadata: { name: "g", namespace: "default" },
  spec: { source: { selector: { matchLabels: { app: "db" } } }, ...over },
});
