/**
 * The same objects to Kubernetes' own volume controllers and to ours, on one real API server: what either makes of them is
 * compared, for each in-tree plugin, with its migration off and on. Neither has a cloud provider, so what stays in-tree shows
 * in events. Ours run with `compat`, which leaves out the deliberate differences (docs/decisions/0003).
 */
import {
  type HttpKubeClient,
  type KubeObject,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Resource,
  resources,
} from "@longshore/kube";
import { featureGates, stopAll } from "@longshore/runtime";
import {
  csiPlugin,
  inTreePlugins,
  startAttachDetachController,
  startExpandController,
  startPersistentVolumeController,
  startProtectionControllers,
  volumeGates,
} from "@longshore/volumes";
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
/** How long nothing may change until a world counts as settled, in milliseconds. */
const quietMs = 6_000;
const withinMs = 90_000;

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

let plane: ControlPlane;
let kube: HttpKubeClient;
const outcomes = new Map<string, Outcome>();

describe("the same objects to both", () => {
  beforeAll(async () => {
    plane = await startControlPlane();
    kube = await connectAs(plane);
    for (const mode of modes) {
      for (const side of ["kubernetes", "ours"] as const) {
        outcomes.set(`${side} ${mode}`, await outcomeOf(side, mode));
      }
    }
  }, 600_000);
  afterAll(() => plane.stop());

  describe.each(modes)("migration %s", (mode) => {
    test.each(pluginVolumes.map(({ shortName }) => shortName))("%s", (plugin) => {
      const theirs = outcomes.get(`kubernetes ${mode}`)?.[plugin];
      expect(Object.keys(theirs ?? {}).length).toBeGreaterThan(5);
      expect(outcomes.get(`ours ${mode}`)?.[plugin]).toEqual(theirs);
    });
  });
});

async function outcomeOf(side: "kubernetes" | "ours", mode: Mode): Promise<Outcome> {
  for (const plugin of pluginVolumes) await createObjects(plugin);
  const stop = side === "kubernetes" ? await startKubernetes(mode) : await startOurs(mode);
  try {
    await settled();
    for (const plugin of pluginVolumes) await changeObjects(plugin);
    await settled();
    const found: Record<string, Readonly<Record<string, unknown>>> = {};
    for (const plugin of pluginVolumes) found[plugin.shortName] = await observe(plugin);
    return found;
  } finally {
    await stop();
    await removeAll();
  }
}

async function startKubernetes(mode: Mode): Promise<() => Promise<void>> {
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

async function startOurs(mode: Mode): Promise<() => Promise<void>> {
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

async function createObjects(plugin: PluginVolumes): Promise<void> {
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
  await createClaim(plugin, "new", `${shortName}-now`);
  await createClaim(plugin, "waits", `${shortName}-wait`);
  for (const use of ["migrated", "plain", "grow", "deleted"]) await createBound(plugin, use);
  for (const [use, node] of [
    ["migrated", migratedNode(plugin)],
    ["plain", plainNode(plugin)],
  ] as const) {
    await createPod(`${shortName}-pv-${use}`, node, {
      persistentVolumeClaim: { claimName: `${shortName}-${use}` },
    });
    await createPod(`${shortName}-inline-${use}`, node, plugin.inline(`${shortName}-inline-${use}`));
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

async function createClaim({ shortName }: PluginVolumes, use: string, storageClass: string): Promise<void> {
  await kube.create(resources.persistentVolumeClaims, claimOf(`${shortName}-${use}`, storageClass, {}), {
    signal,
  });
}

/** A claim with its volume, as the in-tree provisioner has made them. */
async function createBound({ shortName, source }: PluginVolumes, use: string): Promise<void> {
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

async function createPod(name: string, nodeName: string, volume: object): Promise<void> {
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
async function changeObjects({ shortName }: PluginVolumes): Promise<void> {
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

async function removeAll(): Promise<void> {
  for (const resource of kinds) {
    for (const { metadata } of (await kube.list(resource, { signal })).items) {
      const { name } = metadata;
      const ref = metadata.namespace === undefined ? { name } : { name, namespace: metadata.namespace };
      const body = { metadata: { finalizers: null } };
      await kube.patch(resource, ref, { type: "merge", body }, { signal }).catch(() => {});
      await kube.delete(resource, ref, { signal, gracePeriodSeconds: 0 }).catch(() => {});
    }
  }
}

/** Waits until nothing but events that repeat has changed for a while. */
async function settled(): Promise<void> {
  let before = "";
  let since = Date.now();
  await eventually(
    "nothing changes",
    async () => {
      const now = JSON.stringify(await Promise.all(pluginVolumes.map(observe)));
      if (now !== before) {
        before = now;
        since = Date.now();
      }
      return Date.now() - since > quietMs || undefined;
    },
    withinMs,
  );
}

// What is compared

async function observe({ shortName }: PluginVolumes): Promise<Record<string, unknown>> {
  const own = (name: string | undefined) => (name ?? "").startsWith(`${shortName}-`);
  const list = async <T extends KubeObject>(resource: Resource<T>) =>
    (await kube.list(resource, { signal })).items;
  const found: Record<string, unknown> = {};
  for (const { metadata, status } of await list(resources.persistentVolumeClaims)) {
    if (!own(metadata.name)) continue;
    found[`claim ${metadata.name}`] = {
      annotations: metadata.annotations ?? {},
      finalizers: metadata.finalizers ?? [],
      isDeleting: metadata.deletionTimestamp !== undefined,
      phase: status?.phase,
      capacity: status?.capacity,
      conditions: (status?.conditions ?? []).map(({ type, status: value }) => `${type}=${value}`),
    };
  }
  for (const { metadata, spec, status } of await list(resources.persistentVolumes)) {
    if (!own(metadata.name)) continue;
    found[`volume ${metadata.name}`] = {
      annotations: metadata.annotations ?? {},
      finalizers: metadata.finalizers ?? [],
      phase: status?.phase,
      capacity: spec?.capacity,
    };
  }
  for (const { metadata, spec } of await list(resources.volumeAttachments)) {
    if (!own(spec.nodeName)) continue;
    const { inlineVolumeSpec, ...source } = spec.source;
    // What an inline volume is translated to follows the newer library (docs/behaviour/volume-plugins.md 8.3).
    const inline = inlineVolumeSpec?.csi && { driver: inlineVolumeSpec.csi.driver };
    found[`attachment ${metadata.name}`] = {
      attacher: spec.attacher,
      nodeName: spec.nodeName,
      source,
      inline,
    };
  }
  for (const { metadata, status } of await list(resources.nodes)) {
    if (!own(metadata.name)) continue;
    found[`node ${metadata.name}`] = (status?.volumesAttached ?? []).map(({ name }) => name).sort();
  }
  const texts = (await list(resources.events))
    .filter(({ involvedObject }) => own(involvedObject.name))
    .map(
      ({ involvedObject: { kind, name }, type, reason, message }) =>
        `${kind} ${name}: ${type} ${reason}: ${message}`,
    );
  found.events = [...new Set(texts)].sort();
  return found;
}
