/**
 * The same objects to Kubernetes' own volume controllers and to ours, on one real API server for each mode: what either makes
 * of them is compared, for each in-tree plugin, with its migration off and on. Neither has a cloud provider, so what stays
 * in-tree shows in events. Ours run with `compat`, which leaves out most of the deliberate differences (docs/decisions/0003);
 * `support/plugin-volumes.ts` names the others, plugin by plugin.
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
import { differences, type Outcome, observeOutcome, replacedIn } from "./support/volume-outcomes.ts";

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

const shortNames = pluginVolumes.map(({ shortName }) => shortName);
const modes = ["off", "on"] as const;
type Mode = (typeof modes)[number];

const gatesOf = (mode: Mode): Readonly<Record<string, boolean>> => ({
  CSIMigration: true,
  ...Object.fromEntries(
    pluginVolumes.flatMap(({ gate }) => (gate === undefined ? [] : [[gate, mode === "on"]])),
  ),
});

/** What one set of controllers has made of the objects: while pods use them, and after some of the pods are gone. */
type Life = Readonly<Record<"inUse" | "givenBack", Outcome>>;

const lives = new Map<string, Life>();

describe("the same objects to both", () => {
  const planes: ControlPlane[] = [];
  beforeAll(async () => {
    await Promise.all(
      modes.map(async (mode) => {
        const plane = await startControlPlane();
        planes.push(plane);
        const kube = await connectAs(plane);
        const startKubernetes = () => startOfKubernetes(plane, mode);
        lives.set(`kubernetes ${mode}`, await lifeUnder(kube, startKubernetes, slowestRefusalMs));
        lives.set(`ours ${mode}`, await lifeUnder(kube, async () => startOurs(kube, mode), 0));
      }),
    );
  }, 600_000);
  afterAll(() => Promise.all(planes.map((plane) => plane.stop())));

  describe.each(modes)("migration %s", (mode) => {
    describe.each(["inUse", "givenBack"] as const)("%s", (phase) => {
      const outcomeOf = (whose: string, { shortName }: PluginVolumes) =>
        lives.get(`${whose} ${mode}`)?.[phase][shortName] ?? { fields: {}, events: [] };
      test.each(pluginVolumes)("$shortName", (plugin) => {
        const theirs = outcomeOf("kubernetes", plugin);
        expect(Object.keys(theirs.fields).length).toBeGreaterThan(50);
        expect(theirs.events.length).toBeGreaterThan(0);
        expect(
          differences(replacedIn(theirs, plugin.meantDifferences ?? []), outcomeOf("ours", plugin)),
        ).toEqual([]);
      });
    });
  });

  test("what is attached, is detached after its pod", () => {
    const attached = ({ shortName }: PluginVolumes, phase: keyof Life) =>
      Object.keys(lives.get("kubernetes on")?.[phase][shortName]?.fields ?? {}).filter((path) =>
        /^attachment of [^,]*, name$/.test(path),
      ).length;
    const counts = pluginVolumes.map((plugin) => [attached(plugin, "inUse"), attached(plugin, "givenBack")]);
    const migrated = pluginVolumes.map(({ gate }) => (gate === undefined ? [0, 0] : [2, 1]));
    expect(counts).toEqual(migrated);
  });
});

/** @param leastMs how long the objects are left alone after the changes */
async function lifeUnder(
  kube: HttpKubeClient,
  start: () => Promise<() => Promise<void>>,
  leastMs: number,
): Promise<Life> {
  for (const plugin of pluginVolumes) await createObjects(kube, plugin);
  const stop = await start();
  try {
    await settled(kube, 0);
    // Only now: 1.20 passes over a pod that it sees before its node, for three minutes.
    for (const plugin of pluginVolumes) await createPods(kube, plugin);
    await settled(kube, 0);
    for (const plugin of pluginVolumes) await changeObjects(kube, plugin);
    const inUse = await settled(kube, leastMs);
    for (const plugin of pluginVolumes) await deletePod(kube, `${plugin.shortName}-pv-migrated`);
    return { inUse, givenBack: await settled(kube, 0) };
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
  for (const use of ["migrated", "plain", "grow", "carried", "deleted"]) {
    await createBound(kube, plugin, use);
  }
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

/** A claim with its volume, as the in-tree provisioner has made them; `carried`: as a migration has left them. */
async function createBound(
  kube: HttpKubeClient,
  { shortName, driver, source }: PluginVolumes,
  use: string,
): Promise<void> {
  const name = `${shortName}-${use}`;
  const provisioner = `kubernetes.io/${shortName}`;
  const carried = use === "carried" ? { "pv.kubernetes.io/migrated-to": driver } : {};
  const claim = claimOf(
    name,
    `${shortName}-now`,
    { volumeName: name },
    {
      ...bound,
      ...carried,
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
        ...carried,
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

/** As a kubelet does that has stopped it. */
async function deletePod(kube: HttpKubeClient, name: string): Promise<void> {
  await kube.delete(resources.pods, { namespace, name }, { signal, gracePeriodSeconds: 0 });
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
    const outcome = await observeOutcome(kube, shortNames);
    const text = JSON.stringify(outcome);
    if (text !== before) since = performance.now();
    before = text;
    const now = performance.now();
    return now - since > quietMs && now - beganAt > leastMs && outcome;
  };
  return eventually("nothing changes", probe, withinMs, pollMs);
}
