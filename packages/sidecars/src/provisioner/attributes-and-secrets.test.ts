/** Volume attributes classes, and secrets: read for each call, never stored, never logged. */
import { type PersistentVolumeClaim, resources } from "@longshore/kube";
import { recordingLogger } from "@longshore/runtime";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

const namespace = "default";
const withSecrets = aStorageClass({
  parameters: {
    "csi.storage.k8s.io/provisioner-secret-name": `\${pvc.name}-secret`,
    "csi.storage.k8s.io/provisioner-secret-namespace": `\${pvc.namespace}`,
    type: "gp3",
  },
});

interface SecretWorld extends World {
  readonly driver: FakeProvisioning;
}

async function secretWorld(storageClass = aStorageClass()): Promise<SecretWorld> {
  const driver = new FakeProvisioning();
  const world = await sidecarWorld({}, { extend: driver.extend });
  await addNode(world, "node-a", "us-east-1a");
  await world.kube.create(resources.storageClasses, storageClass, { signal: world.signal });
  return { ...world, driver };
}

const putSecret = async ({ kube, signal }: World, value: string) => {
  const ref = { name: "data-web-0-secret", namespace };
  const data = { key: Buffer.from(value).toString("base64") };
  if ((await kube.get(resources.secrets, ref, { signal })) === undefined)
    await kube.create(resources.secrets, { metadata: ref, data }, { signal });
  else await kube.patch(resources.secrets, ref, { type: "merge", body: { data } }, { signal });
};

const createClaim = ({ kube, signal }: World, spec: object = {}) => {
  const claim = aClaim();
  const changed = { ...claim, spec: { ...claim.spec, ...spec } } as PersistentVolumeClaim;
  return kube.create(resources.persistentVolumeClaims, changed, { signal });
};

const theVolume = (world: World) =>
  world.eventually("a volume", async () => {
    const { items } = await world.kube.list(resources.persistentVolumes, { signal: world.signal });
    return items[0];
  });

const failure = (world: World) =>
  world.eventually("an event of failure", async () => {
    const { items } = await world.kube.list(resources.events, { signal: world.signal });
    return items.find(({ reason }) => reason === "ProvisioningFailed")?.message;
  });

describe("secrets", () => {
  it("are read again for each call, so that a changed one is used", async () => {
    const world = await secretWorld(withSecrets);
    world.cloud.next("CreateVolume", { code: "ABORTED" }, { code: "ABORTED" });
    await putSecret(world, "first");
    const provisioner = startProvisioner(world.env());
    await createClaim(world);
    await world.eventually("the first call", async () => world.driver.requests.length === 1);
    await putSecret(world, "second");
    const pv = await theVolume(world);
    expect(world.driver.requests.map(({ secrets }) => secrets.key)).toEqual(["first", "second", "second"]);
    expect(world.driver.requests.at(-1)?.parameters).toEqual({ type: "gp3" });
    expect(pv.metadata.annotations).toMatchObject({
      "volume.kubernetes.io/provisioner-deletion-secret-name": "data-web-0-secret",
      "volume.kubernetes.io/provisioner-deletion-secret-namespace": namespace,
    });
    await provisioner.stop();
  });

  it("that are missing leave the claim as it is, free to be deleted", async () => {
    const world = await secretWorld(withSecrets);
    const provisioner = startProvisioner(world.env());
    const claim = await createClaim(world);
    expect(await failure(world)).toContain('secret "default/data-web-0-secret" not found');
    const ref = { name: "data-web-0", namespace };
    const now = await world.kube.get(resources.persistentVolumeClaims, ref, { signal: world.signal });
    expect(now?.metadata.resourceVersion).toBe(claim.metadata.resourceVersion);
    await putSecret(world, "late");
    await theVolume(world);
    await provisioner.stop();
  });

  it("appear in no log and no event, whatever fails", async () => {
    const value = "correct-horse-battery-staple";
    const world = await secretWorld(withSecrets);
    await putSecret(world, value);
    const logger = recordingLogger();
    const codes = ["INTERNAL", "UNAVAILABLE", "INVALID_ARGUMENT"] as const;
    world.cloud.next("CreateVolume", ...codes.map((code) => ({ code })));
    const provisioner = startProvisioner({ ...world.env(), logger });
    await createClaim(world);
    const pv = await theVolume(world);
    world.cloud.next("DeleteVolume", { code: "INTERNAL" });
    const body = { status: { phase: "Released" } };
    const options = { signal: world.signal, subresource: "status" } as const;
    await world.kube.patch(
      resources.persistentVolumes,
      { name: pv.metadata.name },
      { type: "merge", body },
      options,
    );
    await world.eventually("disk gone", async () => world.cloud.disks.size === 0);
    const { items } = await world.kube.list(resources.events, { signal: world.signal });
    const output = JSON.stringify([logger.lines, items]);
    expect(JSON.stringify(logger.lines)).toContain("CSI CreateVolume INTERNAL");
    expect(output).not.toContain(value);
    await provisioner.stop();
  });
});

describe("a VolumeAttributesClass", () => {
  const createAttributes = ({ kube, signal }: World, driverName: string) =>
    kube.create(
      resources.volumeAttributesClasses,
      { metadata: { name: "fast" }, driverName, parameters: { iops: "9000" } },
      { signal },
    );

  it("gives the volume its mutable parameters", async () => {
    const world = await secretWorld();
    await createAttributes(world, "ebs.csi.aws.com");
    const provisioner = startProvisioner(world.env());
    await createClaim(world, { volumeAttributesClassName: "fast" });
    const pv = await theVolume(world);
    expect(world.driver.requests[0]?.mutableParameters).toEqual({ iops: "9000" });
    expect(pv.spec?.volumeAttributesClassName).toBe("fast");
    await provisioner.stop();
  });

  it("that is missing is waited for", async () => {
    const world = await secretWorld();
    const provisioner = startProvisioner(world.env());
    await createClaim(world, { volumeAttributesClassName: "fast" });
    expect(await failure(world)).toContain('VolumeAttributesClass "fast" not found');
    await createAttributes(world, "ebs.csi.aws.com");
    await theVolume(world);
    await provisioner.stop();
  });

  it("of another driver is refused", async () => {
    const world = await secretWorld();
    await createAttributes(world, "other.example.com");
    const provisioner = startProvisioner(world.env());
    await createClaim(world, { volumeAttributesClassName: "fast" });
    expect(await failure(world)).toContain("of another driver");
    expect(world.driver.requests).toHaveLength(0);
    await provisioner.stop();
  });

  it("is passed over where the gate is off", async () => {
    const world = await secretWorld();
    const provisioner = startProvisioner(world.env(), { volumeAttributesClass: false });
    await createClaim(world, { volumeAttributesClassName: "fast" });
    const pv = await theVolume(world);
    expect(world.driver.requests[0]?.mutableParameters).toEqual({});
    expect(pv.spec?.volumeAttributesClassName).toBeUndefined();
    await provisioner.stop();
  });
});
