import { type PersistentVolumeClaim, resources, type Stored } from "@longshore/kube";
import { Life } from "@longshore/testing/kube";
import { describe, expect, it } from "vitest";
import { mortal } from "../testing/crashing.ts";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

const intent = "longshore.dev/provisioning";
const protection = "external-provisioner.volume.kubernetes.io/finalizer";
const inTreeClass = () =>
  aStorageClass({ provisioner: "kubernetes.io/aws-ebs", parameters: { type: "gp2" } });
const ref = { name: "data-web-0", namespace: "default" };

async function clusterWith(storageClass = aStorageClass()): Promise<World> {
  const world = await sidecarWorld();
  await addNode(world, "node-a", "us-east-1a");
  await addNode(world, "node-b", "us-east-1b");
  await world.kube.create(resources.storageClasses, storageClass, { signal: world.signal });
  return world;
}

const getClaim = ({ kube, signal }: World) => kube.get(resources.persistentVolumeClaims, ref, { signal });
const listPvs = async ({ kube, signal }: World) =>
  (await kube.list(resources.persistentVolumes, { signal })).items;
const createClaim = ({ kube, signal }: World, claim = aClaim()) =>
  kube.create(resources.persistentVolumeClaims, claim, { signal });
const intentOff = (world: World) => async () =>
  !((await getClaim(world))?.metadata.finalizers ?? []).includes(intent);

/** Provisioned: the PV is there and the intent is gone. */
async function provisioned(world: World) {
  await world.eventually("a volume", async () => (await listPvs(world)).length > 0);
  await world.eventually("the intent taken off", intentOff(world));
  const [pv] = await listPvs(world);
  if (pv === undefined) throw new Error("the volume vanished");
  return pv;
}

async function annotate({ kube, signal }: World, annotations: Record<string, string | null>) {
  const body = { metadata: { annotations } };
  await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
}

/** What the persistent-volume controller does when a claim is gone. */
async function markReleased({ kube, signal }: World, name: string) {
  const body = { status: { phase: "Released" } };
  await kube.patch(
    resources.persistentVolumes,
    { name },
    { type: "merge", body },
    { signal, subresource: "status" },
  );
}

/** Lets the claim go, as the persistent-volume-claim protection does once no pod uses it. */
async function deleteClaim({ kube, signal }: World) {
  await kube.delete(resources.persistentVolumeClaims, ref, { signal });
  const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
  const finalizers = claim?.metadata.finalizers ?? [];
  const at = finalizers.indexOf("kubernetes.io/pvc-protection");
  if (at < 0) return;
  const body = [{ op: "remove", path: `/metadata/finalizers/${at}` }];
  await kube.patch(resources.persistentVolumeClaims, ref, { type: "json", body }, { signal });
}

/** Every version of the claim that was ever stored, from a watch. */
function versionsOf(world: World): Stored<PersistentVolumeClaim>[] {
  const seen: Stored<PersistentVolumeClaim>[] = [];
  void (async () => {
    for await (const event of world.kube.watch(resources.persistentVolumeClaims, { signal: world.signal })) {
      if (event.type !== "BOOKMARK") seen.push(event.object);
    }
  })().catch(() => {});
  return seen;
}

describe("the provisioner", () => {
  it("makes a CSI volume for a claim, with its intent stored before", async () => {
    const world = await clusterWith();
    const versions = versionsOf(world);
    const seenIntent: boolean[] = [];
    world.csi.intercept(async (call, proceed) => {
      if (call.rpc === "CreateVolume") seenIntent.push(!(await intentOff(world)()));
      return proceed();
    });
    const provisioner = startProvisioner(world.env());
    const claim = await createClaim(world);
    const pv = await provisioned(world);
    expect(pv.metadata.name).toBe(`pvc-${claim.metadata.uid}`);
    expect(pv.metadata.annotations).toMatchObject({ "pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com" });
    expect(pv.metadata.finalizers).toContain(protection);
    expect(pv.spec).toMatchObject({
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      storageClassName: "gp2",
      persistentVolumeReclaimPolicy: "Delete",
      csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-0001" },
      claimRef: { kind: "PersistentVolumeClaim", ...ref, uid: claim.metadata.uid },
    });
    expect(pv.spec?.nodeAffinity?.required?.nodeSelectorTerms).toHaveLength(1);
    expect(seenIntent).toEqual([true]);
    await world.clock.advance(60_000);
    expect(versions.map(({ metadata }) => (metadata.finalizers ?? []).includes(intent))).toEqual([
      false,
      true,
      false,
    ]);
    expect(world.cloud.calls).toHaveLength(1);
    await provisioner.stop();
  });

  it.each([
    [
      "claims made while migration is on",
      { "volume.beta.kubernetes.io/storage-provisioner": "ebs.csi.aws.com" },
    ],
    [
      "claims from before it",
      {
        "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs",
        "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com",
      },
    ],
  ])("gives a migrated class in-tree volumes: %s", async (_, annotations) => {
    const world = await clusterWith(inTreeClass());
    const provisioner = startProvisioner(world.env());
    await createClaim(world, aClaim({ annotations }));
    const pv = await provisioned(world);
    expect(pv.spec?.csi).toBeUndefined();
    expect(pv.spec?.awsElasticBlockStore).toMatchObject({ volumeID: "vol-0001" });
    expect(pv.metadata.annotations).toMatchObject({
      "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs",
      "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com",
    });
    await provisioner.stop();
  });

  it("leaves a claim of the in-tree plugin to the persistent-volume controller", async () => {
    const world = await clusterWith(inTreeClass());
    const provisioner = startProvisioner(world.env());
    const annotations = { "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs" };
    await createClaim(world, aClaim({ annotations }));
    await world.clock.advance(60_000);
    expect(world.cloud.calls).toEqual([]);
    expect(await intentOff(world)()).toBe(true);
    await annotate(world, { "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" });
    await provisioned(world);
    await provisioner.stop();
  });

  it("does not touch an intent that another provisioner stored", async () => {
    const world = await clusterWith(inTreeClass());
    const annotations = { "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs" };
    const claim = aClaim({ annotations });
    const provisioner = startProvisioner(world.env());
    await createClaim(world, { ...claim, metadata: { ...claim.metadata, finalizers: [intent] } });
    await deleteClaim(world);
    await world.clock.advance(60_000);
    expect(await intentOff(world)()).toBe(false);
    expect(world.cloud.calls).toEqual([]);
    await provisioner.stop();
  });

  it("waits for the scheduler, then puts the volume near the chosen node", async () => {
    const world = await clusterWith(aStorageClass({ volumeBindingMode: "WaitForFirstConsumer" }));
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    await world.clock.advance(60_000);
    expect(world.cloud.calls).toEqual([]);
    await annotate(world, { "volume.kubernetes.io/selected-node": "node-b" });
    await provisioned(world);
    expect([...world.cloud.disks.values()]).toMatchObject([{ zone: "us-east-1b" }]);
    await provisioner.stop();
  });

  it.each([
    ["the zone is exhausted", "node-b", true],
    ["the chosen node is gone", "node-gone", false],
  ])("asks for another node when %s", async (_, node, asked) => {
    const world = await clusterWith(aStorageClass({ volumeBindingMode: "WaitForFirstConsumer" }));
    if (asked) world.cloud.next("CreateVolume", { code: "RESOURCE_EXHAUSTED" });
    const versions = versionsOf(world);
    const provisioner = startProvisioner(world.env());
    await createClaim(
      world,
      aClaim({
        annotations: { ...aClaim().metadata?.annotations, "volume.kubernetes.io/selected-node": node },
      }),
    );
    await world.eventually(
      "node taken off",
      async () =>
        (await getClaim(world))?.metadata.annotations?.["volume.kubernetes.io/selected-node"] === undefined,
    );
    expect(world.cloud.calls).toHaveLength(asked ? 1 : 0);
    await annotate(world, { "volume.kubernetes.io/selected-node": "node-a" });
    const pv = await provisioned(world);
    expect(pv.spec?.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions?.[0]?.values).toEqual([
      "us-east-1a",
    ]);
    await world.clock.advance(1000);
    // Creation and the scheduler's choice left aside, the claim was written at most three times.
    expect(versions.length - 2).toBeLessThanOrEqual(3);
    await provisioner.stop();
  });

  it("repeats an uncertain call until it is answered, and makes one volume", async () => {
    const world = await clusterWith();
    world.cloud.next("CreateVolume", { lost: true }, { code: "ABORTED" }, { code: "UNAVAILABLE" });
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    const pv = await provisioned(world);
    expect(world.cloud.disks.size).toBe(1);
    expect(pv.spec?.csi?.volumeHandle).toBe("vol-0001");
    await provisioner.stop();
  });

  it("deletes the volume of a claim that was deleted while its creation was uncertain", async () => {
    const world = await clusterWith();
    world.cloud.next("CreateVolume", { lost: true });
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    await world.eventually("a disk", async () => world.cloud.disks.size === 1);
    await deleteClaim(world);
    await world.eventually("claim gone", async () => (await getClaim(world)) === undefined);
    expect(world.cloud.disks.size).toBe(0);
    expect(await listPvs(world)).toEqual([]);
    await provisioner.stop();
  });

  it("follows up after a restart what an earlier life left uncertain, also for a deleted claim", async () => {
    const world = await clusterWith();
    world.cloud.next("CreateVolume", { lost: true });
    const first = startProvisioner(world.env());
    await createClaim(world);
    await world.eventually("a disk", async () => world.cloud.disks.size === 1);
    await first.stop();
    await deleteClaim(world);
    const second = startProvisioner(world.env());
    await world.eventually("claim gone", async () => (await getClaim(world)) === undefined);
    expect(world.cloud.disks.size).toBe(0);
    await second.stop();
  });

  it("lets a claim go whose driver finally refused, without asking again", async () => {
    const world = await clusterWith();
    world.cloud.next("CreateVolume", { code: "OUT_OF_RANGE" });
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    await world.eventually("a refusal", async () => world.cloud.calls.length === 1);
    await deleteClaim(world);
    await world.eventually("claim gone", async () => (await getClaim(world)) === undefined);
    expect(world.cloud.calls).toHaveLength(1);
    await provisioner.stop();
  });

  it("deletes disk and volume once released, but not while attached", async () => {
    const world = await clusterWith(inTreeClass());
    const { kube, signal, cloud, clock } = world;
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    const { metadata } = await provisioned(world);
    const name = metadata.name;
    const spec = { attacher: "ebs.csi.aws.com", nodeName: "node-a", source: { persistentVolumeName: name } };
    await kube.create(resources.volumeAttachments, { metadata: { name: "va" }, spec }, { signal });
    await deleteClaim(world);
    await markReleased(world, name);
    await clock.advance(30_000);
    expect(cloud.disks.size).toBe(1);
    await kube.delete(resources.volumeAttachments, { name: "va" }, { signal });
    await world.eventually("disk gone", async () => cloud.disks.size === 0);
    await world.eventually("our finalizer gone", async () => {
      const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
      return pv === undefined || !(pv.metadata.finalizers ?? []).includes(protection);
    });
    await provisioner.stop();
  });

  it("keeps the disk of a volume whose policy is Retain", async () => {
    const world = await clusterWith(aStorageClass({ reclaimPolicy: "Retain" }));
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    const { metadata } = await provisioned(world);
    expect(metadata.finalizers ?? []).not.toContain(protection);
    await deleteClaim(world);
    await markReleased(world, metadata.name);
    await world.clock.advance(120_000);
    expect(world.cloud.disks.size).toBe(1);
    await provisioner.stop();
  });

  it("takes its finalizer off volumes that went back to in-tree", async () => {
    const world = await clusterWith(inTreeClass());
    const { kube, signal } = world;
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    const { metadata } = await provisioned(world);
    expect(metadata.finalizers).toContain(protection);
    const body = { metadata: { annotations: { "pv.kubernetes.io/migrated-to": null } } };
    await kube.patch(
      resources.persistentVolumes,
      { name: metadata.name },
      { type: "merge", body },
      { signal },
    );
    await world.eventually("finalizer off", async () => {
      const pv = await kube.get(resources.persistentVolumes, { name: metadata.name }, { signal });
      return !(pv?.metadata.finalizers ?? []).includes(protection);
    });
    expect(world.cloud.disks.size).toBe(1);
    await provisioner.stop();
  });

  it("refuses what it cannot do, in an event on the claim", async () => {
    const world = await clusterWith();
    const provisioner = startProvisioner(world.env());
    const claim = aClaim();
    await createClaim(world, { ...claim, spec: { ...claim.spec, selector: { matchLabels: { a: "b" } } } });
    const event = await world.eventually("an event", async () =>
      (await world.kube.list(resources.events, { signal: world.signal })).items.find(
        ({ reason }) => reason === "ProvisioningFailed",
      ),
    );
    expect(event.message).toContain("spec.selector is not supported");
    expect(event.involvedObject).toMatchObject({ kind: "PersistentVolumeClaim", ...ref });
    expect(await intentOff(world)()).toBe(true);
    await provisioner.stop();
  });

  it("reaches the same end from a crash at any call: one claim, one disk", async () => {
    const measured = await provisionAndDelete(new Life());
    expect(measured.calls).toBeGreaterThan(8);
    for (let at = 1; at <= measured.calls; at++) {
      for (const effect of ["before", "after"] as const) await provisionAndDelete(new Life(at, effect));
    }
  });

  it("leaks nothing when a claim is deleted at any call of its creation, and the provisioner crashes there", async () => {
    const measured = await provisionAndDelete(new Life());
    for (let at = 1; at <= measured.calls; at++) {
      for (const effect of ["before", "after"] as const) await deleteWhileCrashing(new Life(at, effect));
    }
  });
});

/** A claim gets its volume, is deleted, and the volume goes; the first incarnation has `life`. */
async function provisionAndDelete(life: Life): Promise<Life> {
  const world = await clusterWith();
  let provisioner = startProvisioner(mortal(world.env(), life));
  void life.death.then(() => {
    provisioner = startProvisioner(world.env());
  });
  await createClaim(world);
  const { metadata, spec } = await provisioned(world);
  expect([...world.cloud.disks.keys()], life.log.join(", ")).toEqual([spec?.csi?.volumeHandle]);
  await deleteClaim(world);
  await markReleased(world, metadata.name);
  await world.eventually(`disk gone, ${life.log.join(", ")}`, async () => world.cloud.disks.size === 0);
  await world.eventually("our finalizer gone", async () => {
    const pv = await world.kube.get(
      resources.persistentVolumes,
      { name: metadata.name },
      { signal: world.signal },
    );
    return pv === undefined || !(pv.metadata.finalizers ?? []).includes(protection);
  });
  await provisioner.stop();
  return life;
}

/** The claim is deleted at the moment of the crash; what is left must be nothing. */
async function deleteWhileCrashing(life: Life): Promise<void> {
  const world = await clusterWith();
  let provisioner = startProvisioner(mortal(world.env(), life));
  void life.death.then(async () => {
    await deleteClaim(world);
    provisioner = startProvisioner(world.env());
  });
  await createClaim(world);
  await world.clock.advance(1000);
  await deleteClaim(world);
  const what = `nothing left, crashed ${life.dead} after ${life.log.join(", ")}`;
  await world.eventually(what, async () => {
    // The persistent-volume controller's part: a volume whose claim is gone is released.
    const claim = await getClaim(world);
    if (claim === undefined)
      for (const pv of await listPvs(world)) await markReleased(world, pv.metadata.name);
    return claim === undefined && world.cloud.disks.size === 0;
  });
  await provisioner.stop();
}
