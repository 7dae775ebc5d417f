/**
 * Deployments on the real API server: every form that `longshore driver deploy` renders is taken as it is, and every
 * component goes through a cycle of its work under the token of its own service account, with the rights that the
 * deployment grants. One refusal fails the test.
 */
import { fileURLToPath } from "node:url";
import { inProcessCsi } from "@longshore/csi";
import {
  allObjects,
  type DeployOptions,
  planDeployment,
  removeDeployment,
  renderDeployment,
  upgradeDeployment,
} from "@longshore/deployment";
import { type HttpKubeClient, type KubeObject, type Resource, resources } from "@longshore/kube";
import { stopAll, systemClock } from "@longshore/runtime";
import { snapshotResources } from "@longshore/storage";
import { type AccessLog, deployForms, watchedClient } from "@longshore/testing/deployment";
import { FakeCloud, fakeDriver } from "@longshore/testing/sidecars";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { readDefinitions } from "../../packages/apiserver/src/http/read-definitions.ts";
import { deployedKinds } from "../../packages/deployment/src/deployed-kinds.ts";
import { stepControlPlane } from "../../packages/deployment/src/testing/fake-control-plane.ts";
import { type AccessCycle, accessNames } from "../components/deployment/access-world.ts";
import { accessCycles } from "../components/deployment/cycles.ts";
import { granteeOf, rolesWithout } from "../components/deployment/grants.ts";
import {
  type ControlPlane,
  connectAs,
  connectAsAccount,
  eventually,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";

const minor = 20;

function resourceOf({ kind, apiVersion = "" }: KubeObject): Resource<KubeObject> {
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  const found = deployedKinds.find((resource) => resource.kind === kind && resource.group === group);
  if (found === undefined) throw new Error(`${kind} of ${apiVersion}?`);
  return found;
}

async function installSnapshots(kubernetes: ControlPlane): Promise<void> {
  const path = fileURLToPath(new URL("../../packages/storage/crds/", import.meta.url));
  const url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  for (const definition of await readDefinitions([path])) {
    const { status, body } = await kubernetes.call("POST", url, definition);
    expect(status, JSON.stringify(body)).toBe(201);
  }
  for (const group of ["snapshot", "groupsnapshot"]) {
    const plural = group === "snapshot" ? "volumesnapshotcontents" : "volumegroupsnapshotcontents";
    await eventually(`${plural} are served`, async () => {
      const { status } = await kubernetes.call("GET", `/apis/${group}.storage.k8s.io/v1/${plural}`);
      return status === 200 || undefined;
    });
  }
}

describe("rendered objects", () => {
  let kubernetes: ControlPlane;
  let kube: HttpKubeClient;

  beforeAll(async () => {
    kubernetes = await startControlPlane();
    kube = await connectAs(kubernetes);
    await installSnapshots(kubernetes);
    for (const name of ["storage-secrets", "disk-csi-example-com"]) {
      await kube.create(resources.namespaces, { metadata: { name } }, { signal });
    }
  });
  afterAll(async () => {
    await kube?.close();
    await kubernetes?.stop();
  });

  test.each(Object.entries(deployForms))(
    "%s: taken, and nothing of it is dropped",
    async (_, options: DeployOptions) => {
      const plan = planDeployment({ ...options, kubernetesVersion: `1.${minor}` });
      for (const { object } of allObjects(renderDeployment(plan))) {
        const { name = "" } = object.metadata ?? {};
        const patch = {
          type: "apply",
          body: object,
          fieldManager: "longshore",
          force: true,
          dryRun: true,
        } as const;
        const { namespace } = object.metadata ?? {};
        const ref = namespace === undefined ? { name } : { name, namespace };
        expect(await kube.patch(resourceOf(object), ref, patch, { signal })).toMatchObject(object);
      }
    },
  );
});

test("upgrade brings a deployment up, changes it, finds nothing to do, and remove takes it away", async () => {
  const kubernetes = await startControlPlane();
  const kube = await connectAs(kubernetes);
  try {
    const labels = { "topology.example.com/zone": "a" };
    for (const name of ["node-a", "node-b"]) {
      await kube.create(resources.nodes, { metadata: { name, labels } }, { signal });
    }
    const name = "disk.csi.example.com";
    const env = { ...realEnv, kube };
    const asked = { name, image: "registry.example.com/disk:v1", attach: true, resize: true, replicas: 2 };
    // Plays the controllers and the kubelets while `work` runs.
    const drive = async <T>(work: Promise<T>): Promise<T> => {
      let done = false;
      const ended = work.finally(() => {
        done = true;
      });
      ended.catch(() => {});
      while (!done) {
        await stepControlPlane(kube, name, signal);
        await systemClock.sleep(100, signal);
      }
      return ended;
    };
    const upgrade = (options: Partial<DeployOptions>) =>
      drive(upgradeDeployment(env, { ...options, name }, { signal, timeoutMs: 60_000 }));
    expect((await upgrade(asked)).changed).toBe(true);
    expect((await upgrade({})).changed).toBe(false);
    expect((await upgrade({ image: "registry.example.com/disk:v2", resize: false })).changed).toBe(true);
    expect((await upgrade({})).changed).toBe(false);
    const parameters = { type: "ssd" };
    const refused = upgrade({ storageClasses: [{ name: "disk-csi-example-com", parameters }] });
    await expect(refused).rejects.toThrow(/StorageClass "disk-csi-example-com" is refused/);
    const { namespaces } = await drive(removeDeployment(env, name, { signal, timeoutMs: 60_000 }));
    expect(namespaces).toEqual(["disk-csi-example-com"]);
    for (const resource of deployedKinds) {
      if (resource.kind === "Namespace" || (await kube.servedVersion(resource, { signal })) === undefined)
        continue;
      const { items } = await kube.list(resource, { signal, labelSelector: `longshore.dev/driver=${name}` });
      expect(items).toEqual([]);
    }
    const node = await kube.get(resources.nodes, { name: "node-a" }, { signal });
    expect(node?.metadata.labels).toMatchObject(labels);
  } finally {
    await kube.close();
    await kubernetes.stop();
  }
});

const served = accessCycles.filter(({ sinceMinor = 0 }) => sinceMinor <= minor);

describe("under its own account nothing is refused", () => {
  let kubernetes: ControlPlane;
  let admin: HttpKubeClient;

  beforeAll(async () => {
    kubernetes = await startControlPlane();
    admin = await connectAs(kubernetes);
    await installSnapshots(kubernetes);
    await eventually("the default namespace is there", () =>
      admin.get(resources.namespaces, { name: "default" }, { signal }),
    );
    for (const name of [accessNames.namespace, accessNames.secretNamespace]) {
      await admin.create(resources.namespaces, { metadata: { name } }, { signal });
    }
    const secret = { namespace: accessNames.secretNamespace, name: accessNames.secret };
    await admin.create(resources.secrets, { metadata: secret, stringData: { key: "value" } }, { signal });
  });
  afterEach(() => cleanUp(admin));
  afterAll(async () => {
    await admin?.close();
    await kubernetes?.stop();
  });

  test.each(served)("$component: $name", async (cycle) => {
    await grantRights(admin, cycle);
    const own = await connectAsAccount(kubernetes, admin, granteeOf(cycle).account);
    const cloud = new FakeCloud();
    const csi = inProcessCsi({ clock: systemClock });
    await csi.serve("/csi.sock", (cycle.services ?? fakeDriver)(cloud));
    const log: AccessLog = { asked: new Set(), refused: [] };
    const components: { stop(): Promise<void> }[] = [];
    const check = () => {
      if (log.refused.length > 0) throw new Error(log.refused.join("\n"));
    };
    try {
      await cycle.run({
        admin,
        cloud,
        signal,
        env: { ...realEnv, kube: watchedClient(own, log), csi: csi.connect("/csi.sock") },
        start(component) {
          components.push(component);
          return component;
        },
        eventually: (what, condition) =>
          eventually(what, async () => {
            check();
            const found = await condition();
            return found === false ? undefined : found;
          }) as never,
        async pause(ms) {
          await systemClock.sleep(ms, signal);
          check();
        },
      });
    } finally {
      await stopAll(components);
      await own.close();
    }
    expect(log.refused).toEqual([]);
  });
});

async function grantRights(admin: HttpKubeClient, cycle: AccessCycle): Promise<void> {
  const { account } = granteeOf(cycle);
  await admin.create(resources.serviceAccounts, { metadata: account }, { signal });
  for (const object of rolesWithout(cycle, undefined))
    await admin.create(resourceOf(object), object, { signal });
}

/** What cycles and their rights consist of, as far as it is there once per cluster or namespace. */
const cycleKinds: readonly Resource<KubeObject>[] = [
  ...deployedKinds.filter(({ kind }) => kind !== "Namespace"),
  ...Object.values(snapshotResources),
  resources.pods,
  resources.replicaSets,
  resources.volumeAttachments,
  resources.persistentVolumeClaims,
  resources.persistentVolumes,
  resources.csiNodes,
  resources.nodes,
  resources.events,
  resources.leases,
];

/** Removes everything that a cycle has made, also what finalizers hold. */
async function cleanUp(admin: HttpKubeClient): Promise<void> {
  for (const resource of cycleKinds) {
    if ((await admin.servedVersion(resource, { signal })) === undefined) continue;
    for (const { metadata } of (await admin.list(resource, { signal })).items) {
      const { name, namespace, finalizers, labels } = metadata;
      // What every cluster has, and the namespaces of the system.
      if (labels?.["kubernetes.io/bootstrapping"] !== undefined || namespace?.startsWith("kube-")) continue;
      const ref = namespace === undefined ? { name } : { name, namespace };
      const body = { metadata: { finalizers: null } };
      if ((finalizers ?? []).length > 0)
        await admin.patch(resource, ref, { type: "merge", body }, { signal });
      await admin.delete(resource, ref, { signal, gracePeriodSeconds: 0 });
      const left = await admin.get(resource, ref, { signal });
      if (left !== undefined)
        await admin.patch(resource, ref, { type: "merge", body }, { signal }).catch(() => {});
    }
  }
}
