/** Upgrades and removals against the embedded API server, under a virtual clock. */
import { fileURLToPath } from "node:url";
// Tests stand outside the floors: the embedded API server is the real thing to test against.
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import { type KubeClient, type KubeObject, resources } from "@longshore/kube";
import { noMeter, type RuntimeEnv, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import { expect, test } from "vitest";
import type { DeployOptions } from "../deploy-options.ts";
import { deployedKinds } from "../deployed-kinds.ts";
import { type FakePlaneOptions, stepControlPlane } from "../testing/fake-control-plane.ts";
import { removeDeployment } from "./remove-deployment.ts";
import { RolloutError, type RolloutOptions } from "./rollout.ts";
import { type UpgradeOptions, upgradeDeployment } from "./upgrade-deployment.ts";

const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
const driver = "disk.csi.example.com";
const base = "disk-csi-example-com";
const asked: DeployOptions = {
  name: driver,
  image: "registry.example.com/disk:v1",
  attach: true,
  resize: true,
  secretNamespaces: ["default"],
};
const signal = new AbortController().signal;

class Life {
  calls = 0;
  readonly diesAt: number;
  readonly controller = new AbortController();
  constructor(diesAt = Number.POSITIVE_INFINITY) {
    this.diesAt = diesAt;
  }
}

async function aCluster(emulatedVersion = "1.36", plane: FakePlaneOptions = {}) {
  const clock = new VirtualClock();
  const runtime: RuntimeEnv = { clock, random: new SeededRandom(3), logger: silentLogger, meter: noMeter };
  const server = createApiServer(runtime, {
    store: memoryStore(),
    definitions,
    emulatedVersion,
    controllers: false,
  });
  const admin = server.client();
  for (const name of ["node-a", "node-b"]) {
    await admin.create(
      resources.nodes,
      { metadata: { name, labels: { "topology.example.com/zone": name } } },
      { signal },
    );
  }
  const writes: string[] = [];
  const lines: string[] = [];
  const counted = (life: Life): KubeClient =>
    new Proxy(admin, {
      get(target, name: keyof KubeClient) {
        const member = target[name] as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) => {
          const [{ kind }, ref, patch] = args as [{ kind: string }, { name?: string }, { dryRun?: true }?];
          const isWrite = name === "delete" || (name === "patch" && patch?.dryRun !== true);
          // The process is killed: the call has its effect, but its answer is lost.
          if (isWrite && ++life.calls === life.diesAt) life.controller.abort(new Error("killed"));
          if (isWrite) writes.push(`${name} ${kind} ${ref.name}`);
          return member.apply(target, args);
        };
      },
    });
  /** Runs the rollout while controllers and kubelets work. */
  const drive = async <T>(work: Promise<T>): Promise<T> => {
    let done = false;
    const settled = work.finally(() => {
      done = true;
    });
    settled.catch(() => {});
    await clock.settle();
    while (!done) {
      await stepControlPlane(admin, driver, signal, plane);
      await clock.advance(500);
    }
    return settled;
  };
  const upgrade = (
    over: Partial<DeployOptions> = asked,
    options: Partial<UpgradeOptions> = {},
    life = new Life(),
  ) =>
    drive(
      upgradeDeployment(
        { ...runtime, kube: counted(life) },
        { ...over, name: driver },
        {
          signal: life.controller.signal,
          onProgress: (line) => lines.push(line),
          ...options,
        },
      ),
    );
  const remove = (options: Partial<RolloutOptions> & { force?: boolean } = {}, life = new Life()) =>
    drive(
      removeDeployment({ ...runtime, kube: counted(life) }, driver, {
        signal: life.controller.signal,
        onProgress: (line) => lines.push(line),
        ...options,
      }),
    );
  /** Every object of the deployment's kinds, with what is asked of it. */
  const objects = async (): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const resource of deployedKinds) {
      if ((await admin.servedVersion(resource, { signal })) === undefined) continue;
      for (const { metadata, spec, rules } of (await admin.list(resource, { signal }))
        .items as readonly Loose[]) {
        if (metadata.labels?.["longshore.dev/driver"] !== driver) continue;
        found.push(
          `${resource.kind} ${metadata.namespace ?? ""}/${metadata.name} ${JSON.stringify(spec ?? rules)}`,
        );
      }
    }
    return found;
  };
  return { admin, clock, writes, lines, upgrade, remove, objects };
}
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
type Loose = any;

test.each(["1.36", "1.20"])(
  "a first deployment comes up, at %s, and a second one finds nothing to do",
  async (version) => {
    const { upgrade, admin, writes } = await aCluster(version);
    const options = { ...asked, replicas: 2 };
    expect((await upgrade(options)).changed).toBe(true);
    const ref = { name: `${base}-controller`, namespace: base };
    const controller = await admin.get(resources.deployments, ref, { signal });
    expect(controller?.status?.readyReplicas).toBe(2);
    writes.length = 0;
    expect((await upgrade(options)).changed).toBe(false);
    expect((await upgrade({})).changed).toBe(false); // What was asked for is remembered.
    expect(writes).toEqual([]);
  },
);

test("an upgrade takes the controller down, then brings the nodes, then the controller", async () => {
  const { upgrade, admin, writes, lines } = await aCluster();
  await upgrade();
  writes.length = 0;
  await upgrade({ image: "registry.example.com/disk:v2" });
  const at = (write: string) => {
    expect(writes).toContain(write);
    return writes.indexOf(write);
  };
  expect(at(`delete StatefulSet ${base}-controller`)).toBe(0);
  expect(at(`patch DaemonSet ${base}-node`)).toBeGreaterThan(at(`patch CSIDriver ${driver}`));
  expect(at(`patch StatefulSet ${base}-controller`)).toBe(writes.length - 1);
  expect(lines.filter((line) => /^\d\/4/.test(line))).toHaveLength(8);
  const node = await admin.get(resources.daemonSets, { name: `${base}-node`, namespace: base }, { signal });
  expect(node?.spec?.template.spec?.containers[0]?.image).toBe("registry.example.com/disk:v2");
  expect(node?.status?.updatedNumberScheduled).toBe(2);
});

test("what is not asked for any more goes; classes stay, since claims may name them", async () => {
  const { upgrade, admin } = await aCluster();
  await upgrade({
    ...asked,
    snapshot: true,
    storageClasses: [
      { name: "one", parameters: {} },
      { name: "two", parameters: {} },
    ],
  });
  await upgrade({
    snapshot: false,
    controller: "deployment",
    storageClasses: [{ name: "two", parameters: {} }],
  });
  const roles = {
    group: "rbac.authorization.k8s.io",
    versions: ["v1"],
    kind: "ClusterRole",
    plural: "clusterroles",
    namespaced: false,
  } as const;
  const names = (
    await admin.list(roles, { signal, labelSelector: `longshore.dev/driver=${driver}` })
  ).items.map(({ metadata }) => metadata.name);
  expect(names).toEqual([`${base}-attacher`, `${base}-provisioner`, `${base}-resizer`]);
  expect((await admin.list(resources.statefulSets, { signal })).items).toEqual([]);
  expect((await admin.list(resources.deployments, { signal })).items).toHaveLength(1);
  expect(
    (await admin.list(resources.storageClasses, { signal })).items.map(({ metadata }) => metadata.name),
  ).toEqual(["one", "two"]);
});

/** Many clusters, one after the other: how long they take is not what is tested. */
const timeout = 120_000;

test("killed after any write, it goes on where it was when it is run again", { timeout }, async () => {
  const whole = await aCluster();
  await whole.upgrade();
  const life = new Life();
  await whole.upgrade({ image: "registry.example.com/disk:v2", resize: false }, {}, life);
  const wanted = await whole.objects();
  expect(life.calls).toBeGreaterThan(15);
  for (let at = 1; at <= life.calls; at++) {
    const cluster = await aCluster();
    await cluster.upgrade();
    const change = { image: "registry.example.com/disk:v2", resize: false };
    await expect(cluster.upgrade(change, {}, new Life(at))).rejects.toThrow("killed");
    await cluster.upgrade(change);
    expect(await cluster.objects()).toEqual(wanted);
  }
});

test("a dry run says what would be and writes nothing", async () => {
  const { upgrade, remove, writes, lines } = await aCluster();
  await upgrade(asked, { dryRun: true });
  expect(writes).toEqual([]);
  expect(lines).toContain(`would create DaemonSet "${base}/${base}-node"`);
  await upgrade();
  writes.length = lines.length = 0;
  await upgrade({ image: "registry.example.com/disk:v2" }, { dryRun: true });
  await remove({ dryRun: true });
  expect(writes).toEqual([]);
  expect(lines).toContain(`would change StatefulSet "${base}/${base}-controller"`);
  expect(lines).toContain(`would delete CSIDriver "${driver}"`);
});

test("a class that cannot be changed is refused before anything is touched", async () => {
  const { upgrade, writes } = await aCluster();
  await upgrade();
  writes.length = 0;
  const change = upgrade({ storageClasses: [{ name: base, parameters: { type: "ssd" } }] });
  await expect(change).rejects.toThrow(/StorageClass "disk-csi-example-com" is refused: .*another name/);
  expect(writes).toEqual([]);
});

test("a deadline says what was waited for, and the next run goes on", async () => {
  const plane = { silentNodes: new Set(["node-b"]) };
  const { upgrade } = await aCluster("1.36", plane);
  const first = upgrade(asked, { timeoutMs: 60_000 });
  await expect(first).rejects.toThrow(
    /within 60 s: the node part: 1 of 2 pods are ready\. Run the same command again/,
  );
  plane.silentNodes.delete("node-b");
  expect((await upgrade()).changed).toBe(true);
});

test("what is deployed by another tool, or for another driver, is left alone", async () => {
  const { upgrade, remove, admin, writes } = await aCluster();
  await upgrade();
  const label = (value: object) =>
    admin.patch(
      resources.csiDrivers,
      { name: driver },
      { type: "merge", body: { metadata: { labels: value } } },
      { signal },
    );
  await label({ "app.kubernetes.io/managed-by": "Helm" });
  writes.length = 0;
  await expect(upgrade({})).rejects.toThrow(/managed by Helm/);
  await expect(remove()).rejects.toThrow(/managed by Helm/);
  await label({
    "longshore.dev/driver": "other.csi.example.com",
    "app.kubernetes.io/managed-by": "longshore",
  });
  await expect(upgrade({})).rejects.toThrow(/belongs to the driver "other.csi.example.com"/);
  expect(writes).toEqual([]);
});

test("what another client has made is taken over only if that is asked for", async () => {
  const { upgrade, admin, writes, objects } = await aCluster();
  const spec = { attachRequired: true };
  await admin.create(resources.csiDrivers, { metadata: { name: driver }, spec }, { signal });
  await expect(upgrade()).rejects.toThrow(/CSIDriver "disk.csi.example.com" is there already.*`adopt`/);
  expect(writes).toEqual([]);
  await upgrade(asked, { adopt: true });
  expect(await objects()).toContainEqual(expect.stringContaining(`CSIDriver /${driver}`));
  expect((await upgrade({})).changed).toBe(false);
});

test("the first time an image is needed", async () => {
  const { upgrade } = await aCluster();
  await expect(upgrade({})).rejects.toThrow(/^`image`: /);
});

const aVolume: KubeObject = {
  metadata: { name: "pv-1" },
  spec: {
    capacity: { storage: "1Gi" },
    accessModes: ["ReadWriteOnce"],
    csi: { driver, volumeHandle: "vol-1" },
  },
} as KubeObject;

test("a driver with volumes is not removed, unless that is asked for; labels of nodes stay", async () => {
  const { upgrade, remove, admin, writes, objects } = await aCluster();
  await upgrade();
  await admin.create(resources.persistentVolumes, aVolume, { signal });
  const spec = { attacher: driver, nodeName: "node-a", source: { persistentVolumeName: "pv-1" } };
  await admin.create(resources.volumeAttachments, { metadata: { name: "va-1" }, spec }, { signal });
  writes.length = 0;
  const refusal = remove();
  await expect(refusal).rejects.toThrow(RolloutError);
  await expect(refusal).rejects.toThrow(
    /1 VolumeAttachments \(va-1\).*\n.*1 PersistentVolumes \(pv-1\)[\s\S]*`force`$/,
  );
  expect(writes).toEqual([]);
  const { stranded, namespaces } = await remove({ force: true });
  expect(stranded.map(({ what }) => what)).toEqual(["VolumeAttachments", "PersistentVolumes"]);
  expect(namespaces).toEqual([base]);
  expect(await objects()).toEqual([expect.stringContaining("Namespace")]);
  expect(writes[0]).toBe(`delete StatefulSet ${base}-controller`);
  expect(writes[1]).toBe(`delete DaemonSet ${base}-node`);
  const nodes = (await admin.list(resources.nodes, { signal })).items;
  expect(nodes.map(({ metadata }) => metadata.labels?.["topology.example.com/zone"])).toEqual([
    "node-a",
    "node-b",
  ]);
});

test("a removal that was killed after any write is finished by the next", { timeout }, async () => {
  const whole = await aCluster();
  await whole.upgrade();
  const life = new Life();
  await whole.remove({}, life);
  for (let at = 1; at <= life.calls; at++) {
    const cluster = await aCluster();
    await cluster.upgrade();
    await expect(cluster.remove({}, new Life(at))).rejects.toThrow("killed");
    await cluster.remove();
    expect(await cluster.objects()).toEqual(await whole.objects());
  }
});

test("removing what is not there removes nothing", async () => {
  const { remove } = await aCluster();
  expect(await remove()).toEqual({ removed: 0, stranded: [], namespaces: [] });
});
