/**
 * The ways in which provisioners are known to lose disks, each as a story that must end with none lost: every disk has
 * its PersistentVolume, and every claim has its volume or needs none. Each story runs twice, with and without a restart
 * of the provisioner right after the fault.
 */
import { resources } from "@longshore/kube";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { intent, ref, Stage, selected } from "../testing/leak-stage.ts";
import { addNode, aStorageClass, sidecarWorld } from "../testing/world.ts";

const late = aStorageClass({ volumeBindingMode: "WaitForFirstConsumer" });
const withSecret = aStorageClass({
  parameters: {
    "csi.storage.k8s.io/provisioner-secret-name": "cloud",
    "csi.storage.k8s.io/provisioner-secret-namespace": "default",
  },
});

interface Story {
  readonly name: string;
  readonly storageClass?: ReturnType<typeof aStorageClass>;
  /** Disks that are to be there in the end. */
  readonly disks: number;
  play(stage: Stage): Promise<void>;
}

const stories: readonly Story[] = [
  {
    name: "an uncertain answer, the claim still wanted",
    disks: 1,
    async play(stage) {
      stage.world.cloud.next("CreateVolume", { lost: true });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await stage.mayRestart();
    },
  },
  {
    name: "a claim deleted while CreateVolume is under way",
    disks: 0,
    async play(stage) {
      let finish = () => {};
      const held = new Promise<void>((resolve) => {
        finish = resolve;
      });
      let isHeld = true;
      stage.world.csi.intercept(async (call, proceed) => {
        const answer = await proceed();
        if (call.rpc === "CreateVolume" && isHeld) await held;
        return answer;
      });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await stage.deleteClaim();
      await stage.mayRestart();
      isHeld = false;
      finish();
    },
  },
  {
    name: "a claim deleted after an uncertain answer",
    disks: 0,
    async play(stage) {
      stage.world.cloud.next("CreateVolume", { lost: true }, { code: "ABORTED" }, { code: "UNAVAILABLE" });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await stage.deleteClaim();
      await stage.mayRestart();
    },
  },
  {
    name: "the deletion of what was found is lost, too",
    disks: 0,
    async play(stage) {
      stage.world.cloud.next("CreateVolume", { lost: true });
      stage.world.cloud.next("DeleteVolume", { code: "INTERNAL" }, { lost: true }, { code: "UNAVAILABLE" });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await stage.deleteClaim();
      await stage.untilAsked("DeleteVolume");
      await stage.mayRestart();
    },
  },
  {
    name: "the intent taken off by force after an uncertain answer (a restart cannot know of it)",
    disks: 0,
    async play(stage) {
      stage.world.cloud.next("CreateVolume", { lost: true }, { code: "ABORTED" });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await stage.deleteClaim();
      await stage.forceIntentOff();
    },
  },
  {
    name: "a response that is too small",
    disks: 0,
    async play(stage) {
      stage.driver.answeredBytes = 1n;
      stage.world.cloud.next("DeleteVolume", { code: "INTERNAL" });
      await stage.createClaim();
      await stage.untilAsked("DeleteVolume");
      await stage.mayRestart();
      await stage.deleteClaim();
    },
  },
  {
    name: "a response that was too small once",
    disks: 1,
    async play(stage) {
      stage.driver.answeredBytes = 1n;
      await stage.createClaim();
      await stage.untilAsked("DeleteVolume");
      await stage.mayRestart();
      stage.driver.answeredBytes = undefined;
    },
  },
  {
    name: "a node deleted after an uncertain answer",
    storageClass: late,
    disks: 0,
    async play(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      await stage.createClaim("node-b");
      await stage.untilAsked("CreateVolume");
      await kube.delete(resources.nodes, { name: "node-b" }, { signal });
      await kube.delete(resources.csiNodes, { name: "node-b" }, { signal });
      await stage.mayRestart();
      await stage.world.eventually(
        "rescheduled",
        async () => (await stage.claim())?.metadata.annotations?.[selected] === undefined,
      );
      expect(cloud.disks.size).toBe(0);
      await stage.deleteClaim();
    },
  },
  {
    name: "another node after an uncertain answer and a refusal",
    storageClass: late,
    disks: 1,
    async play(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { code: "DEADLINE_EXCEEDED" }, { code: "RESOURCE_EXHAUSTED" });
      await stage.createClaim("node-b");
      await stage.world.eventually(
        "rescheduled",
        async () => (await stage.claim())?.metadata.annotations?.[selected] === undefined,
      );
      await stage.mayRestart();
      const body = { metadata: { annotations: { [selected]: "node-a" } } };
      await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
      await stage.world.eventually("a disk", async () => cloud.disks.size === 1);
      expect([...cloud.disks.values()].map(({ zone }) => zone)).toEqual(["us-east-1a"]);
    },
  },
  {
    name: "the PersistentVolume cannot be stored for a while",
    disks: 1,
    async play(stage) {
      stage.refusesVolumes = true;
      await stage.createClaim();
      await stage.event("ProvisioningFailed");
      await stage.mayRestart();
      await stage.world.clock.advance(60_000);
      expect(stage.asked("CreateVolume")).toBeLessThanOrEqual(2);
      stage.refusesVolumes = false;
    },
  },
  {
    name: "the PersistentVolume cannot be stored, and the claim is deleted",
    disks: 0,
    async play(stage) {
      stage.refusesVolumes = true;
      await stage.createClaim();
      await stage.event("ProvisioningFailed");
      await stage.deleteClaim();
      await stage.mayRestart();
    },
  },
  {
    name: "another's PersistentVolume has the name",
    disks: 0,
    async play(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      const name = await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      const spec = {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-of-another" },
      };
      await kube.create(resources.persistentVolumes, { metadata: { name }, spec }, { signal });
      await stage.mayRestart();
    },
  },
  {
    name: "another's PersistentVolume gets the name at the last moment",
    disks: 0,
    async play(stage) {
      const { kube, signal } = stage.world;
      const spec = {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-of-another" },
      };
      stage.world.csi.intercept(async (call, proceed) => {
        const answer = await proceed();
        if (call.rpc !== "CreateVolume") return answer;
        const name = `pvc-${(await stage.claim())?.metadata.uid}`;
        await kube
          .create(resources.persistentVolumes, { metadata: { name }, spec }, { signal })
          .catch(() => {});
        return answer;
      });
      await stage.createClaim();
      await stage.untilAsked("DeleteVolume");
      await stage.mayRestart();
    },
  },
  {
    name: "the class deleted after an uncertain answer, then the claim",
    disks: 0,
    async play(stage) {
      const { kube, signal, cloud, clock } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await kube.delete(resources.storageClasses, { name: "gp2" }, { signal });
      await stage.deleteClaim();
      await stage.mayRestart();
      await clock.advance(60_000);
      // A restarted provisioner cannot ask without the class: it says so, and waits.
      if ((await stage.claim()) === undefined) return;
      expect(await stage.event("ProvisioningFailed")).toContain("create the class again");
      await kube.create(resources.storageClasses, aStorageClass(), { signal });
    },
  },
  {
    name: "the class deleted after an uncertain answer, the claim still wanted",
    disks: 1,
    async play(stage) {
      const { kube, signal, cloud, clock } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await kube.delete(resources.storageClasses, { name: "gp2" }, { signal });
      await stage.mayRestart();
      await clock.advance(60_000);
      if ((await stage.volumes()).length > 0) return;
      await kube.create(resources.storageClasses, aStorageClass(), { signal });
    },
  },
  {
    name: "the secret gone when the claim is deleted, and the driver manages without",
    storageClass: withSecret,
    disks: 0,
    async play(stage) {
      await secretThenTimeout(stage);
      await stage.deleteClaim();
      await stage.mayRestart();
    },
  },
  {
    name: "the secret gone when the claim is deleted, and the driver needs it",
    storageClass: withSecret,
    disks: 0,
    async play(stage) {
      stage.driver.neededSecret = "key";
      await secretThenTimeout(stage);
      await stage.deleteClaim();
      await stage.mayRestart();
      expect(await stage.event("ProvisioningCleanupFailed")).toContain("create it again");
      await stage.world.clock.advance(60_000);
      expect((await stage.claim())?.metadata.finalizers).toContain(intent);
      await createSecret(stage);
    },
  },
  {
    name: "answers that say nothing of the volume, after an uncertain one",
    disks: 0,
    async play(stage) {
      stage.world.cloud.next(
        "CreateVolume",
        { lost: true },
        { code: "UNAUTHENTICATED" },
        { code: "PERMISSION_DENIED" },
        { code: "ALREADY_EXISTS" },
        { code: "INTERNAL" },
        { code: "UNKNOWN" },
        { code: "FAILED_PRECONDITION" },
      );
      await stage.createClaim();
      await stage.untilAsked("CreateVolume", 2);
      await stage.deleteClaim();
      await stage.mayRestart();
    },
  },
  {
    name: "a claim bound to another volume after an uncertain answer",
    disks: 0,
    async play(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      const body = { spec: { volumeName: "by-hand" } };
      await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
      await stage.mayRestart();
    },
  },
  {
    name: "a volume that has no in-tree form",
    storageClass: aStorageClass({ provisioner: "kubernetes.io/aws-ebs" }),
    disks: 0,
    async play(stage) {
      stage.driver.volumeContext = { partition: "not a number" };
      stage.world.cloud.next("DeleteVolume", { code: "INTERNAL" });
      await stage.createClaim();
      await stage.untilAsked("DeleteVolume");
      await stage.mayRestart();
      await stage.deleteClaim();
    },
  },
  {
    name: "the migration switched off after an uncertain answer",
    storageClass: aStorageClass({ provisioner: "kubernetes.io/aws-ebs" }),
    disks: 1,
    async play(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      const back = { "volume.beta.kubernetes.io/storage-provisioner": "kubernetes.io/aws-ebs" };
      const patch = (annotations: object) =>
        kube.patch(
          resources.persistentVolumeClaims,
          ref,
          { type: "merge", body: { metadata: { annotations } } },
          { signal },
        );
      await patch(back);
      await stage.mayRestart();
      await stage.world.clock.advance(60_000);
      // After a restart it is not ours to touch, until the migration is on again.
      if ((await stage.volumes()).length > 0) return;
      await patch({ "pv.kubernetes.io/migrated-to": "ebs.csi.aws.com" });
    },
  },
  ...["update PersistentVolumeClaim", "create PersistentVolume"].flatMap((request): Story[] => [
    {
      name: `no answer to: ${request}`,
      disks: 1,
      async play(stage) {
        stage.losesAnswers.push(request);
        await stage.createClaim();
        await stage.world.eventually("the answer lost", async () => stage.losesAnswers.length === 0);
        await stage.mayRestart();
        await stage.world.eventually("a volume", async () => (await stage.volumes()).length === 1);
        expect(stage.asked("DeleteVolume")).toBe(0);
      },
    },
    {
      name: `no answer to: ${request}, and the claim is deleted`,
      disks: 0,
      async play(stage) {
        stage.losesAnswers.push(request);
        await stage.createClaim();
        await stage.world.eventually("the answer lost", async () => stage.losesAnswers.length === 0);
        await stage.deleteClaim();
        await stage.mayRestart();
      },
    },
  ]),
  {
    name: "no answer to the write that takes the intent off",
    disks: 1,
    async play(stage) {
      loseNextClaimWrite(stage);
      await stage.createClaim();
      await stage.world.eventually("the answer lost", async () => stage.lost.length === 1);
      await stage.mayRestart();
    },
  },
  {
    name: "no answer to the write that takes the intent off, and the claim is deleted",
    disks: 0,
    async play(stage) {
      loseNextClaimWrite(stage);
      await stage.createClaim();
      await stage.world.eventually("the answer lost", async () => stage.lost.length === 1);
      await stage.deleteClaim();
      await stage.mayRestart();
      await stage.ends(0);
      // A stored volume is not searched for again: the search would create it again.
      expect(stage.asked("CreateVolume")).toBe(1);
    },
  },
  ...["delete PersistentVolume", "patch PersistentVolume", "get PersistentVolume"].map(
    (request): Story => ({
      name: `a volume that is deleted, no answer to: ${request}`,
      disks: 0,
      async play(stage) {
        await stage.createClaim();
        await stage.world.eventually("a volume", async () => (await stage.volumes()).length === 1);
        await stage.world.clock.advance(1000);
        stage.losesAnswers.push(request);
        await stage.deleteClaim();
        await stage.mayRestart();
      },
    }),
  ),
  {
    name: "a driver away for a minute",
    disks: 1,
    async play(stage) {
      const away = Array.from({ length: 8 }, () => ({ code: "UNAVAILABLE" }) as const);
      stage.world.cloud.next("CreateVolume", { lost: true }, ...away);
      await stage.createClaim();
      await stage.untilAsked("CreateVolume", 3);
      await stage.mayRestart();
    },
  },
];

/** From CreateVolume on, the next write to the claim gets no answer. */
function loseNextClaimWrite(stage: Stage): void {
  let isArmed = true;
  stage.world.csi.intercept(async (call, proceed) => {
    if (call.rpc === "CreateVolume" && isArmed) {
      isArmed = false;
      stage.losesAnswers.push("update PersistentVolumeClaim");
    }
    return proceed();
  });
}

async function createSecret({ world: { kube, signal } }: Stage): Promise<void> {
  const secret = { metadata: { name: "cloud", namespace: "default" }, data: { key: "dmFsdWU=" } };
  await kube.create(resources.secrets, secret, { signal });
}

async function secretThenTimeout(stage: Stage): Promise<void> {
  const { kube, signal, cloud } = stage.world;
  await createSecret(stage);
  cloud.next("CreateVolume", { lost: true });
  await stage.createClaim();
  await stage.untilAsked("CreateVolume");
  await kube.delete(resources.secrets, { name: "cloud", namespace: "default" }, { signal });
}

describe.each([
  ["in one life", false],
  ["with a restart", true],
])("no disk is lost, %s:", (_, restarts) => {
  it.each(stories)("$name", async ({ storageClass = aStorageClass(), disks, play }) => {
    const driver = new FakeProvisioning();
    const world = await sidecarWorld({}, { extend: driver.extend });
    await addNode(world, "node-a", "us-east-1a");
    await addNode(world, "node-b", "us-east-1b");
    await world.kube.create(resources.storageClasses, storageClass, { signal: world.signal });
    const stage = new Stage(world, driver, restarts);
    stage.start();
    await play(stage);
    await stage.ends(disks);
    await stage.stop();
  });
});
