/** Volumes copied from claims and snapshots: what the driver is asked, and who protects the source how long. */
import { fileURLToPath } from "node:url";
import { readDefinitions } from "@longshore/apiserver";
import { KubeApiError, type KubeClient, type PersistentVolumeClaim, resources } from "@longshore/kube";
import { snapshotCrdsUrl, snapshotResources } from "@longshore/storage";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

const cloning = "provisioner.storage.kubernetes.io/cloning-protection";
const restoring = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";
const ns = "default";

interface SourceWorld extends World {
  readonly driver: FakeProvisioning;
}

async function sourceWorld(): Promise<SourceWorld> {
  const driver = new FakeProvisioning();
  const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const featureGates = { CrossNamespaceVolumeDataSource: true };
  const world = await sidecarWorld({}, { extend: driver.extend, definitions, featureGates });
  await addNode(world, "node-a", "us-east-1a");
  await world.kube.create(resources.storageClasses, aStorageClass(), { signal: world.signal });
  return { ...world, driver };
}

const finalizersOf = async ({ kube, signal }: World, name: string) =>
  (await kube.get(resources.persistentVolumeClaims, { name, namespace: ns }, { signal }))?.metadata
    .finalizers ?? [];

async function createClaim({ kube, signal }: World, name: string, source?: object, kind = "dataSource") {
  const claim = aClaim({ name });
  const spec = { ...claim.spec, ...(source === undefined ? {} : { [kind]: source }) };
  return kube.create(resources.persistentVolumeClaims, { ...claim, spec } as PersistentVolumeClaim, {
    signal,
  });
}

/** What the persistent-volume controller does with a claim whose volume is there. */
async function bind(world: World, name: string) {
  const { kube, signal } = world;
  const claim = await kube.get(resources.persistentVolumeClaims, { name, namespace: ns }, { signal });
  const pvName = `pvc-${claim?.metadata.uid}`;
  await world.eventually(`volume of ${name}`, async () => {
    const pv = await kube.get(resources.persistentVolumes, { name: pvName }, { signal });
    return pv !== undefined && !(await finalizersOf(world, name)).includes("longshore.dev/provisioning");
  });
  const merge = (body: object) => ({ type: "merge", body }) as const;
  const ref = { name, namespace: ns };
  await kube.patch(resources.persistentVolumeClaims, ref, merge({ spec: { volumeName: pvName } }), {
    signal,
  });
  const status = { signal, subresource: "status" } as const;
  const bound = merge({ status: { phase: "Bound" } });
  await kube.patch(resources.persistentVolumeClaims, ref, bound, status);
  await kube.patch(resources.persistentVolumes, { name: pvName }, bound, status);
}

async function createSnapshot({ kube, signal }: World, name: string) {
  const snapshot = await kube.create(
    snapshotResources.volumeSnapshots,
    { metadata: { name, namespace: ns }, spec: { source: { persistentVolumeClaimName: "src" } } },
    { signal },
  );
  const contentName = `content-${name}`;
  await kube.create(
    snapshotResources.volumeSnapshotContents,
    {
      metadata: { name: contentName },
      spec: {
        deletionPolicy: "Delete",
        driver: "ebs.csi.aws.com",
        source: { volumeHandle: "vol-0001" },
        volumeSnapshotRef: { name, namespace: ns, uid: snapshot.metadata.uid },
      },
    },
    { signal },
  );
  const status = { signal, subresource: "status" } as const;
  const merge = (body: object) => ({ type: "merge", body }) as const;
  await kube.patch(
    snapshotResources.volumeSnapshotContents,
    { name: contentName },
    merge({ status: { snapshotHandle: `handle-${name}`, readyToUse: true } }),
    status,
  );
  await kube.patch(
    snapshotResources.volumeSnapshots,
    { name, namespace: ns },
    merge({ status: { boundVolumeSnapshotContentName: contentName, readyToUse: true } }),
    status,
  );
}

const snapshotSource = (name: string) => ({
  apiGroup: "snapshot.storage.k8s.io",
  kind: "VolumeSnapshot",
  name,
});
const snapshotFinalizers = async ({ kube, signal }: World, name: string) =>
  (await kube.get(snapshotResources.volumeSnapshots, { name, namespace: ns }, { signal }))?.metadata
    .finalizers ?? [];

const failureOf = (world: World) =>
  world.eventually("an event of failure", async () =>
    (await world.kube.list(resources.events, { signal: world.signal })).items.find(
      ({ reason }) => reason === "ProvisioningFailed",
    ),
  );

describe("a clone", () => {
  it("is copied from its source, which stays until the copy is made", async () => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env());
    await createClaim(world, "src");
    await bind(world, "src");
    world.cloud.next("CreateVolume", { code: "ABORTED" });
    await createClaim(world, "copy", { kind: "PersistentVolumeClaim", name: "src" });
    await world.eventually("protection", async () => (await finalizersOf(world, "src")).includes(cloning));
    await world.kube.delete(
      resources.persistentVolumeClaims,
      { name: "src", namespace: ns },
      { signal: world.signal },
    );
    await bind(world, "copy");
    expect(world.driver.requests.at(-1)?.volumeContentSource?.type).toMatchObject({
      case: "volume",
      value: { volumeId: "vol-0001" },
    });
    await world.eventually(
      "no protection",
      async () => !(await finalizersOf(world, "src")).includes(cloning),
    );
    await provisioner.stop();
  });

  it("whose source is deleted while no clone is under way lets it go, also after a restart", async () => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env());
    await createClaim(world, "src");
    await bind(world, "src");
    await createClaim(world, "copy", { kind: "PersistentVolumeClaim", name: "src" });
    await bind(world, "copy");
    await provisioner.stop();
    expect(await finalizersOf(world, "src")).toContain(cloning);
    await world.kube.delete(
      resources.persistentVolumeClaims,
      { name: "src", namespace: ns },
      { signal: world.signal },
    );
    const second = startProvisioner(world.env());
    await world.eventually(
      "no protection",
      async () => !(await finalizersOf(world, "src")).includes(cloning),
    );
    await second.stop();
  });

  it("waits, and reports why, for a source that does not exist yet", async () => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env());
    await createClaim(world, "copy", { kind: "PersistentVolumeClaim", name: "src" });
    expect((await failureOf(world)).message).toContain("there is no PVC default/src");
    expect(await finalizersOf(world, "copy")).not.toContain("longshore.dev/provisioning");
    await createClaim(world, "src");
    await bind(world, "src");
    await bind(world, "copy");
    await provisioner.stop();
  });

  it("that the driver made empty is deleted", async () => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env());
    await createClaim(world, "src");
    await bind(world, "src");
    world.driver.forgetsSource = true;
    await createClaim(world, "copy", { kind: "PersistentVolumeClaim", name: "src" });
    expect((await failureOf(world)).message).toContain("content_source");
    expect(world.cloud.disks.size).toBe(1);
    world.driver.forgetsSource = false;
    await bind(world, "copy");
    expect(world.cloud.disks.size).toBe(2);
    await provisioner.stop();
  });

  it.each([
    ["is refused without the gate", {}, "CrossNamespaceVolumeDataSource"],
    ["needs a grant with it", { crossNamespaceDataSource: true }, "cannot be used"],
  ])("from another namespace %s", async (_, options, text) => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env(), options);
    const source = { apiGroup: "", kind: "PersistentVolumeClaim", name: "src", namespace: "other" };
    const claim = await createClaim(world, "copy", source, "dataSourceRef");
    expect(claim.spec?.dataSourceRef?.namespace).toBe("other");
    expect((await failureOf(world)).message).toContain(text);
    expect(world.cloud.disks.size).toBe(0);
    await provisioner.stop();
  });
});

describe("a volume from a snapshot", () => {
  it("is copied from it, which is protected until then", async () => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env());
    await createSnapshot(world, "snap");
    const protectedAtCall: boolean[] = [];
    world.csi.intercept(async (call, proceed) => {
      if (call.rpc === "CreateVolume")
        protectedAtCall.push((await snapshotFinalizers(world, "snap")).includes(restoring));
      return proceed();
    });
    await createClaim(world, "restored", snapshotSource("snap"));
    await bind(world, "restored");
    expect(protectedAtCall).toEqual([true]);
    expect(world.driver.requests.at(-1)?.volumeContentSource?.type).toMatchObject({
      case: "snapshot",
      value: { snapshotId: "handle-snap" },
    });
    await world.eventually(
      "let go",
      async () => !(await snapshotFinalizers(world, "snap")).includes(restoring),
    );
    await provisioner.stop();
  });

  it("comes to its end though the snapshot is deleted after a call without an answer", async () => {
    const world = await sourceWorld();
    const { kube, signal, cloud, driver } = world;
    const snap = { name: "snap", namespace: ns };
    const first = startProvisioner(world.env());
    await createSnapshot(world, "snap");
    cloud.next("CreateVolume", { lost: true });
    await createClaim(world, "restored", snapshotSource("snap"));
    await world.eventually("asked for", async () => driver.requests.length > 0);
    await kube.delete(snapshotResources.volumeSnapshots, snap, { signal });
    await first.stop();
    const second = startProvisioner(world.env());
    await bind(world, "restored");
    await world.eventually(
      "the snapshot is gone",
      async () => (await kube.get(snapshotResources.volumeSnapshots, snap, { signal })) === undefined,
    );
    await second.stop();
  });

  it("leaves the snapshot protected while another claim waits for it", async () => {
    const world = await sourceWorld();
    const provisioner = startProvisioner(world.env());
    await createSnapshot(world, "snap");
    await world.kube.create(
      resources.storageClasses,
      aStorageClass({ metadata: { name: "late" }, volumeBindingMode: "WaitForFirstConsumer" }),
      { signal: world.signal },
    );
    const waiting = aClaim({ name: "waiting" });
    await world.kube.create(
      resources.persistentVolumeClaims,
      {
        ...waiting,
        spec: { ...waiting.spec, storageClassName: "late", dataSource: snapshotSource("snap") },
      } as PersistentVolumeClaim,
      { signal: world.signal },
    );
    await createClaim(world, "restored", snapshotSource("snap"));
    await bind(world, "restored");
    await world.clock.advance(1000);
    expect(await snapshotFinalizers(world, "snap")).toContain(restoring);
    await world.kube.delete(
      resources.persistentVolumeClaims,
      { name: "waiting", namespace: ns },
      { signal: world.signal },
    );
    const body = { metadata: { finalizers: null } };
    await world.kube.patch(
      resources.persistentVolumeClaims,
      { name: "waiting", namespace: ns },
      { type: "merge", body },
      { signal: world.signal },
    );
    await world.eventually(
      "swept",
      async () => !(await snapshotFinalizers(world, "snap")).includes(restoring),
    );
    await provisioner.stop();
  });

  it("sweeps what a process that died has left", async () => {
    const world = await sourceWorld();
    await createSnapshot(world, "snap");
    const body = { metadata: { finalizers: [restoring, "other.example.com/keep"] } };
    await world.kube.patch(
      snapshotResources.volumeSnapshots,
      { name: "snap", namespace: ns },
      { type: "merge", body },
      { signal: world.signal },
    );
    const provisioner = startProvisioner(world.env());
    await world.eventually(
      "swept",
      async () => !(await snapshotFinalizers(world, "snap")).includes(restoring),
    );
    expect(await snapshotFinalizers(world, "snap")).toEqual(["other.example.com/keep"]);
    await provisioner.stop();
  });

  it("is made with a role that may only read snapshots", async () => {
    const world = await sourceWorld();
    await createSnapshot(world, "snap");
    const readOnly = new Proxy(world.kube, {
      get(target, name: keyof KubeClient) {
        const member = target[name] as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => {
          const { kind } = args[0] as { readonly kind: string };
          if (name === "update" && kind === "VolumeSnapshot") {
            const status = { kind: "Status", apiVersion: "v1", status: "Failure", code: 403 } as const;
            return Promise.reject(new KubeApiError({ ...status, reason: "Forbidden", message: "forbidden" }));
          }
          return member.apply(target, args);
        };
      },
    });
    const provisioner = startProvisioner(world.env(readOnly));
    await createClaim(world, "restored", snapshotSource("snap"));
    await bind(world, "restored");
    await provisioner.stop();
  });
});
