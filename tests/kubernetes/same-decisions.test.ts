/**
 * The same objects to Kubernetes' own volume controllers and to ours, on one real API server for each mode: what either makes
 * of them is compared, for each in-tree plugin, with its migration off and on. Neither has a cloud provider, so what stays
 * in-tree shows in events. Ours run with `compat`, which leaves out most of the deliberate differences (docs/decisions/0003);
 * `support/plugin-volumes.ts` names the others, plugin by plugin.
 */
import {
  type Event,
  type HttpKubeClient,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Resource,
  resources,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { featureGates, stopAll } from "@longshore/runtime";
import {
  csiPlugin,
  startAttachDetachController,
  startExpandController,
  startPersistentVolumeController,
  startProtectionControllers,
  volumeGates,
} from "@longshore/volumes";
import { inTreePlugins } from "@longshore/volumes/in-tree-plugins";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ControlPlane,
  connectAs,
  createWithStatus,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";
import { type PluginVolumes, pluginVolumes } from "./support/plugin-volumes.ts";
import { eventually } from "./support/processes.ts";

const compat = "kubernetes-1.20" as const;
const namespace = "default";
const managed = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
const migratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins";
/** How long nothing may change until the objects count as settled, in milliseconds. */
const quietMs = 6_000;
/** For so long the GCE plugin of 1.20 asks for its cloud before it says that there is none (docs/decisions/0003, 24). */
const slowestRefusalMs = 55_000;
const withinMs = 150_000;
const pollMs = 500;

const modes = ["off", "on"] as const;
type Mode = (typeof modes)[number];

const gatesOf = (mode: Mode): Readonly<Record<string, boolean>> => ({
  CSIMigration: true,
  ...Object.fromEntries(
    pluginVolumes.flatMap(({ gate }) => (gate === undefined ? [] : [[gate, mode === "on"]])),
  ),
});

/** What one set of controllers has made of the objects, by plugin. */
type Outcome = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const outcomes = new Map<string, Outcome>();

describe("the same objects to both", () => {
  const planes: ControlPlane[] = [];
  beforeAll(async () => {
    await Promise.all(
      modes.map(async (mode) => {
        const plane = await startControlPlane();
        planes.push(plane);
        const kube = await connectAs(plane);
        const startKubernetes = () => startOfKubernetes(plane, mode);
        outcomes.set(`kubernetes ${mode}`, await outcomeOf(kube, startKubernetes, slowestRefusalMs));
        outcomes.set(`ours ${mode}`, await outcomeOf(kube, async () => startOurs(kube, mode), 0));
      }),
    );
  }, 600_000);
  afterAll(() => Promise.all(planes.map((plane) => plane.stop())));

  describe.each(modes)("migration %s", (mode) => {
    test.each(pluginVolumes)("$shortName", (plugin) => {
      const theirs = outcomes.get(`kubernetes ${mode}`)?.[plugin.shortName] ?? {};
      expect(Object.keys(theirs).length).toBeGreaterThan(5);
      expect(outcomes.get(`ours ${mode}`)?.[plugin.shortName]).toEqual(asOurs(theirs, plugin));
    });
  });
});

/** @param leastMs how long the objects are left alone after the changes */
async function outcomeOf(
  kube: HttpKubeClient,
  start: () => Promise<() => Promise<void>>,
  leastMs: number,
): Promise<Outcome> {
  for (const plugin of pluginVolumes) await createObjects(kube, plugin);
  const stop = await start();
  try {
    await settled(kube, 0);
    // Only now: 1.20 passes over a pod that it sees before its node, for three minutes.
    for (const plugin of pluginVolumes) await createPods(kube, plugin);
    await settled(kube, 0);
    for (const plugin of pluginVolumes) await changeObjects(kube, plugin);
    return await settled(kube, leastMs);
  } finally {
    await stop();
    await removeAll(kube);
  }
}

async function startOfKubernetes(plane: ControlPlane, mode: Mode): Promise<() => Promise<void>> {
  await plane.startControllerManager({
    controllers: [
      "attachdetach",
      "persistentvolume-binder",
      "persistentvolume-expander",
      "pv-protection",
      "pvc-protection",
    ],
    featureGates: gatesOf(mode),
    args: ["--kube-api-qps=500", "--kube-api-burst=1000"],
  });
  return () => plane.stopControllerManager();
}

function startOurs(kube: HttpKubeClient, mode: Mode): () => Promise<void> {
  const gates = featureGates(volumeGates, gatesOf(mode));
  const env = () => ({ ...realEnv, kube, plugins: [...inTreePlugins(), csiPlugin()] });
  const controllers = [
    startAttachDetachController(env(), { gates, compat }),
    startPersistentVolumeController(env(), { gates, compat }),
    startExpandController(env(), { gates }),
    startProtectionControllers(env()),
  ];
  return () => stopAll(controllers);
}

// The objects

const migratedNode = ({ shortName }: PluginVolumes) => `${shortName}-migrated`;
const plainNode = ({ shortName }: PluginVolumes) => `${shortName}-plain`;
const bound = { "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" };

async function createObjects(kube: HttpKubeClient, plugin: PluginVolumes): Promise<void> {
  const { shortName, driver } = plugin;
  const inTreeName = `kubernetes.io/${shortName}`;
  for (const name of [migratedNode(plugin), plainNode(plugin)]) {
    await kube.create(
      resources.nodes,
      { apiVersion: "v1", kind: "Node", metadata: { name, annotations: managed } },
      { signal },
    );
    const isMigrated = name === migratedNode(plugin);
    await kube.create(
      resources.csiNodes,
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "CSINode",
        metadata: { name, ...(isMigrated ? { annotations: { [migratedPlugins]: inTreeName } } : {}) },
        spec: { drivers: [{ name: driver, nodeID: name, topologyKeys: [] }] },
      },
      { signal },
    );
  }
  for (const [suffix, volumeBindingMode] of [
    ["now", "Immediate"],
    ["wait", "WaitForFirstConsumer"],
  ] as const) {
    await kube.create(
      resources.storageClasses,
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "StorageClass",
        metadata: { name: `${shortName}-${suffix}` },
        provisioner: inTreeName,
        reclaimPolicy: "Delete",
        volumeBindingMode,
        allowVolumeExpansion: true,
      },
      { signal },
    );
  }
  await createClaim(kube, `${shortName}-new`, `${shortName}-now`);
  await createClaim(kube, `${shortName}-waits`, `${shortName}-wait`);
  for (const use of ["migrated", "plain", "grow", "deleted"]) await createBound(kube, plugin, use);
}

async function createPods(kube: HttpKubeClient, plugin: PluginVolumes): Promise<void> {
  const { shortName } = plugin;
  for (const [use, node] of [
    ["migrated", migratedNode(plugin)],
    ["plain", plainNode(plugin)],
  ] as const) {
    await createPod(kube, `${shortName}-pv-${use}`, node, {
      persistentVolumeClaim: { claimName: `${shortName}-${use}` },
    });
    await createPod(kube, `${shortName}-inline-${use}`, node, plugin.inline(`${shortName}-inline-${use}`));
  }
}

function claimOf(
  name: string,
  storageClassName: string,
  extra: object,
  annotations: Record<string, string> = {},
): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace, annotations },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName,
      resources: { requests: { storage: "5Gi" } },
      ...extra,
    },
  };
}

async function createClaim(kube: HttpKubeClient, name: string, storageClass: string): Promise<void> {
  await kube.create(resources.persistentVolumeClaims, claimOf(name, storageClass, {}), { signal });
}

/** A claim with its volume, as the in-tree provisioner has made them. */
async function createBound(
  kube: HttpKubeClient,
  { shortName, source }: PluginVolumes,
  use: string,
): Promise<void> {
  const name = `${shortName}-${use}`;
  const provisioner = `kubernetes.io/${shortName}`;
  const claim = claimOf(
    name,
    `${shortName}-now`,
    { volumeName: name },
    {
      ...bound,
      "volume.beta.kubernetes.io/storage-provisioner": provisioner,
    },
  );
  const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "5Gi" } };
  const { metadata } = await createWithStatus(kube, resources.persistentVolumeClaims, { ...claim, status });
  const volume: PersistentVolume = {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name,
      annotations: {
        "pv.kubernetes.io/bound-by-controller": "yes",
        "pv.kubernetes.io/provisioned-by": provisioner,
      },
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "5Gi" },
      storageClassName: `${shortName}-now`,
      persistentVolumeReclaimPolicy: "Delete",
      claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid: metadata.uid },
      ...source(name),
    },
  };
  await createWithStatus(kube, resources.persistentVolumes, { ...volume, status: { phase: "Bound" } });
}

async function createPod(
  kube: HttpKubeClient,
  name: string,
  nodeName: string,
  volume: object,
): Promise<void> {
  await kube.create(
    resources.pods,
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace },
      spec: {
        nodeName,
        containers: [{ name: "c", image: "i", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
        volumes: [{ name: "v", ...volume }],
      },
    },
    { signal },
  );
}

/** What happens to the objects while the controllers run. */
async function changeObjects(kube: HttpKubeClient, { shortName }: PluginVolumes): Promise<void> {
  const claims = resources.persistentVolumeClaims;
  const body = { spec: { resources: { requests: { storage: "8Gi" } } } };
  await kube.patch(claims, { namespace, name: `${shortName}-grow` }, { type: "merge", body }, { signal });
  await kube.delete(claims, { namespace, name: `${shortName}-deleted` }, { signal });
  const { items } = await kube.list(resources.volumeAttachments, { signal });
  for (const { metadata, spec } of items) {
    if (!spec.nodeName.startsWith(`${shortName}-`)) continue;
    const status = { type: "merge", body: { status: { attached: true } } } as const;
    await kube.patch(resources.volumeAttachments, { name: metadata.name }, status, {
      signal,
      subresource: "status",
    });
  }
}

const kinds = [
  resources.pods,
  resources.persistentVolumeClaims,
  resources.persistentVolumes,
  resources.volumeAttachments,
  resources.csiNodes,
  resources.nodes,
  resources.storageClasses,
  resources.events,
] as readonly Resource<KubeObject>[];

async function removeAll(kube: HttpKubeClient): Promise<void> {
  for (const resource of kinds) {
    const { items } = await kube.list(resource, { signal });
    await Promise.all(
      items.map(async ({ metadata }) => {
        const { name, namespace: within } = metadata;
        const ref = within === undefined ? { name } : { name, namespace: within };
        const body = { metadata: { finalizers: null } };
        await kube.patch(resource, ref, { type: "merge", body }, { signal }).catch(() => {});
        await kube.delete(resource, ref, { signal, gracePeriodSeconds: 0 }).catch(() => {});
      }),
    );
  }
}

/** Waits until nothing that is compared has changed for a while, and for `leastMs` in any case. */
async function settled(kube: HttpKubeClient, leastMs: number): Promise<Outcome> {
  const beganAt = performance.now();
  let before = "";
  let since = beganAt;
  const probe = async () => {
    const outcome = await observe(kube);
    const text = JSON.stringify(outcome);
    if (text !== before) since = performance.now();
    before = text;
    const now = performance.now();
    return now - since > quietMs && now - beganAt > leastMs && outcome;
  };
  return eventually("nothing changes", probe, withinMs, pollMs);
}

// What is compared

/** One object, or all events of a plugin, by what it is called in the comparison. */
type Observed = readonly [owner: string, key: string, value: unknown];

async function observe(kube: HttpKubeClient): Promise<Outcome> {
  const list = async <T extends KubeObject>(resource: Resource<T>) =>
    (await kube.list(resource, { signal })).items;
  const observed: readonly Observed[] = [
    ...(await list(resources.persistentVolumeClaims)).map(observeClaim),
    ...(await list(resources.persistentVolumes)).map(observeVolume),
    ...(await list(resources.volumeAttachments)).map(observeAttachment),
    ...(await list(resources.nodes)).map(observeNode),
  ];
  const events = await list(resources.events);
  return Object.fromEntries(
    pluginVolumes.map(({ shortName }) => {
      const isOwn = (name = "") => name.startsWith(`${shortName}-`);
      const objects = observed.filter(([owner]) => isOwn(owner)).map(([, key, value]) => [key, value]);
      const texts = events.filter(({ involvedObject }) => isOwn(involvedObject.name)).map(eventText);
      return [shortName, { ...Object.fromEntries(objects), events: [...new Set(texts)].sort() }];
    }),
  );
}

function observeClaim({ metadata, status }: Stored<PersistentVolumeClaim>): Observed {
  const value = {
    annotations: metadata.annotations ?? {},
    finalizers: metadata.finalizers ?? [],
    isDeleting: metadata.deletionTimestamp !== undefined,
    phase: status?.phase,
    capacity: status?.capacity,
    conditions: (status?.conditions ?? []).map(({ type, status: is }) => `${type}=${is}`),
  };
  return [metadata.name, `claim ${metadata.name}`, value];
}

function observeVolume({ metadata, spec, status }: Stored<PersistentVolume>): Observed {
  const value = {
    annotations: metadata.annotations ?? {},
    finalizers: metadata.finalizers ?? [],
    phase: status?.phase,
    capacity: spec?.capacity,
  };
  return [metadata.name, `volume ${metadata.name}`, value];
}

function observeAttachment({ metadata, spec }: Stored<VolumeAttachment>): Observed {
  const { inlineVolumeSpec, persistentVolumeName } = spec.source;
  const volume = persistentVolumeName ?? `inline of ${inlineVolumeSpec?.csi?.driver}`;
  const key = `attachment of ${volume} to ${spec.nodeName}`;
  return [spec.nodeName, key, { name: metadata.name, attacher: spec.attacher }];
}

function observeNode({ metadata, status }: Stored<Node>): Observed {
  const attached = (status?.volumesAttached ?? []).map(({ name }) => name).sort();
  return [metadata.name, `node ${metadata.name}`, attached];
}

function eventText({ involvedObject: { kind, name }, type, reason, message }: Stored<Event>): string {
  return `${kind} ${name}: ${type} ${reason}: ${message}`;
}

/** What Kubernetes has made, with the differences that are meant taken out of it. */
function asOurs(
  theirs: Readonly<Record<string, unknown>>,
  { meantDifferences = [] }: PluginVolumes,
): unknown {
  return JSON.parse(JSON.stringify(theirs), (_key, value: unknown) => {
    if (typeof value !== "string") return value;
    return meantDifferences.reduce((text, [pattern, ours]) => text.replace(pattern, ours), value);
  });
}
