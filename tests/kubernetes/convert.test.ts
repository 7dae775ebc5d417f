/**
 * Conversions on a real API server with RBAC, as a user with the printed rights, while Kubernetes' own persistent-volume
 * controller, protection controllers and garbage collector do their work. The volumes of all eight plugins have policy Delete.
 */
import {
  type HttpKubeClient,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
} from "@longshore/kube";
import {
  type ConversionEnv,
  type ConversionResult,
  conversionRoles,
  newJournal,
  planConversion,
  planUndo,
  readClusterId,
  readJournals,
  runConversion,
} from "@longshore/migration";
import { SimulatedHost } from "@longshore/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  bindRole,
  type ControlPlane,
  connectAs,
  eventually,
  type History,
  realEnv,
  record,
  signal,
  startControlPlane,
} from "./support/index.ts";
import { pluginVolumes } from "./support/plugin-volumes.ts";

const user = "converter";
const namespace = "default";
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const journalDir = "/conversions";
const host = new SimulatedHost({ name: "operator" });

let kubernetes: ControlPlane;
let kube: HttpKubeClient;
let converter: HttpKubeClient;
let volumes: History<PersistentVolume>;
let claims: History<PersistentVolumeClaim>;
let env: ConversionEnv;
const afterwards: (() => void)[] = [];

beforeAll(async () => {
  kubernetes = await startControlPlane({ controllerManager: true, users: [{ name: user }] });
  kube = await connectAs(kubernetes);
  converter = await connectAs(kubernetes, user);
  env = { ...realEnv, kube: converter, host };
  await grantPrintedRights();
  for (const { driver, shortName, source } of pluginVolumes) {
    await kube.create(resources.csiDrivers, { metadata: { name: driver }, spec: {} } as never, { signal });
    await addPair(shortName, source(`disk-${shortName}`));
  }
  volumes = await record(kube, resources.persistentVolumes);
  claims = await record(kube, resources.persistentVolumeClaims);
});
afterAll(async () => {
  for (const end of afterwards) end();
  await Promise.all([volumes?.stop(), claims?.stop()]);
  await Promise.all([kube?.close(), converter?.close()]);
  await kubernetes?.stop();
});

async function grantPrintedRights(): Promise<void> {
  const [clusterRole, role] = conversionRoles();
  const name = clusterRole?.metadata?.name ?? "";
  await post(`${rbac}/clusterroles`, clusterRole);
  await bindRole(kubernetes, user, name);
  const system = `${rbac}/namespaces/${role?.metadata?.namespace}`;
  await post(`${system}/roles`, role);
  const apiGroup = "rbac.authorization.k8s.io";
  await post(`${system}/rolebindings`, {
    metadata: { name },
    subjects: [{ apiGroup, kind: "User", name: user }],
    roleRef: { apiGroup, kind: "Role", name: role?.metadata?.name },
  });
}

async function post(path: string, object: unknown): Promise<void> {
  const { status, body } = await kubernetes.call("POST", path, object);
  expect([status, body.message]).toEqual([201, undefined]);
}

/** A volume with policy Delete, and its claim; bound by Kubernetes. */
async function addPair(name: string, source: object): Promise<void> {
  const size = { storage: "1Gi" };
  const volume = {
    metadata: {
      name: `pv-${name}`,
      annotations: { "pv.kubernetes.io/provisioned-by": `kubernetes.io/${name}` },
      labels: { "longshore.test/kept": "yes" },
    },
    spec: {
      ...source,
      capacity: size,
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "standard",
      claimRef: { namespace, name },
    },
  };
  const claim = {
    metadata: { namespace, name, labels: { app: name } },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: size },
      storageClassName: "standard",
      volumeName: `pv-${name}`,
    },
  };
  await kube.create(resources.persistentVolumes, volume as unknown as PersistentVolume, { signal });
  await kube.create(resources.persistentVolumeClaims, claim as PersistentVolumeClaim, { signal });
  await eventually(`${name} is bound`, async () => {
    const stored = await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
    return stored?.status?.phase === "Bound";
  });
}

async function convert(): Promise<ConversionResult> {
  const plan = await planConversion(env, {}, signal);
  expect(plan.refused).toEqual([]);
  const journals = plan.volumes.map((planned) => newJournal(planned, plan.clusterId, "convert"));
  return runConversion(env, journals, { journalDir, parallel: 4 }, signal);
}

async function undo(): Promise<ConversionResult> {
  const clusterId = await readClusterId(converter, signal);
  const journals = [
    ...(await readJournals({ kube: converter, host, dir: journalDir }, clusterId, signal)).values(),
  ];
  const plan = await planUndo(converter, journals, {}, signal);
  expect(plan.refused).toEqual([]);
  const back = plan.volumes.map((planned) => {
    const name = planned.toAfter.metadata?.name;
    const earlier = journals.find((journal) => journal.planned.volume === name);
    return newJournal(planned, clusterId, "undo", earlier);
  });
  return runConversion(env, back, { journalDir, parallel: 4 }, signal);
}

/** Creates the claim again, as an operator would, the moment it is gone; resolves with whether it came first. */
async function recreateOnce(name: string): Promise<boolean> {
  const ref = { namespace, name };
  const before = await kube.get(resources.persistentVolumeClaims, ref, { signal });
  const controller = new AbortController();
  afterwards.push(() => controller.abort());
  const resourceVersion = before?.metadata.resourceVersion ?? "";
  const watch = kube.watch(resources.persistentVolumeClaims, { signal: controller.signal, resourceVersion });
  try {
    for await (const event of watch) {
      if (event.type !== "DELETED" || event.object.metadata.name !== name) continue;
      const { volumeName: _, ...spec } = before?.spec ?? {};
      const claim = { metadata: ref, spec } as PersistentVolumeClaim;
      await kube.create(resources.persistentVolumeClaims, claim, { signal });
      return true;
    }
  } catch {
    // The run was first, or the test has ended.
  }
  return false;
}

async function expectState(form: "csi" | "in-tree"): Promise<void> {
  const stored = (await kube.list(resources.persistentVolumes, { signal })).items;
  expect(stored).toHaveLength(pluginVolumes.length);
  for (const { shortName, driver } of pluginVolumes) {
    const ref = { namespace, name: shortName };
    const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
    const volume = stored.find(({ metadata }) => metadata.name === claim?.spec?.volumeName);
    expect(claim?.status?.phase, shortName).toBe("Bound");
    expect(volume?.status?.phase, shortName).toBe("Bound");
    expect(volume?.spec?.claimRef?.uid, shortName).toBe(claim?.metadata.uid);
    expect(volume?.spec?.persistentVolumeReclaimPolicy, shortName).toBe("Delete");
    expect(volume?.metadata.labels?.["longshore.test/kept"], shortName).toBe("yes");
    expect(volume?.spec?.csi?.driver, shortName).toBe(form === "csi" ? driver : undefined);
    if (form === "in-tree") expect(volume?.metadata.name).toBe(`pv-${shortName}`);
  }
}

/** In no state that was ever stored could anybody have deleted a disk, or have made one for a claim. */
function expectSafeHistory(): void {
  const danger = volumes.states
    .filter(({ spec }) => spec?.persistentVolumeReclaimPolicy === "Delete")
    .filter(({ metadata, status }) => metadata.deletionTimestamp !== undefined || status?.phase !== "Bound")
    .map(({ metadata, status }) => `${metadata.name} ${status?.phase}`);
  expect(danger).toEqual([]);
  const failed = volumes.states.filter(
    ({ status }) => status?.phase === "Failed" || status?.phase === "Lost",
  );
  expect(failed).toEqual([]);
  expect(claims.states.filter(({ status }) => status?.phase === "Lost")).toEqual([]);
}

test("volumes of all plugins become CSI volumes while the controllers of Kubernetes race, and in-tree ones again", async () => {
  const other = recreateOnce("cinder");
  const result = await convert();
  expect(result.failed).toEqual([]);
  expect(result.converted).toHaveLength(pluginVolumes.length);
  // The claim may have been created by the run first: either way one claim has the disk.
  await other;
  await expectState("csi");
  expectSafeHistory();

  const back = await undo();
  expect(back.failed).toEqual([]);
  expect(back.converted).toHaveLength(pluginVolumes.length);
  await expectState("in-tree");
  expectSafeHistory();
});
