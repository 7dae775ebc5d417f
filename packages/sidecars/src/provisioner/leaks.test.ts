/**
 * The ways in which provisioners are known to lose disks, each as a story that must end with none lost: every disk has
 * its PersistentVolume, every claim its volume or its peace. Each is told twice, with and without a restart of the
 * provisioner right after the fault.
 */
import {
  isDeleting,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type PersistentVolume,
  resources,
  type Stored,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { FakeProvisioning } from "../testing/fake-provisioning.ts";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

const intent = "longshore.dev/provisioning";
const protection = "external-provisioner.volume.kubernetes.io/finalizer";
const selected = "volume.kubernetes.io/selected-node";
const ref = { name: "data-web-0", namespace: "default" };
const late = aStorageClass({ volumeBindingMode: "WaitForFirstConsumer" });
const withSecret = aStorageClass({
  parameters: {
    "csi.storage.k8s.io/provisioner-secret-name": "cloud",
    "csi.storage.k8s.io/provisioner-secret-namespace": "default",
  },
});

/** A cluster with a provisioner in which a story happens. */
class Stage {
  readonly world: World;
  readonly driver: FakeProvisioning;
  /** Creating PersistentVolumes fails while it is set. */
  refusesVolumes = false;
  /** Requests that are done once more without an answer, e.g. `create PersistentVolume`. */
  readonly losesAnswers: string[] = [];
  /** Those to which it happened. */
  readonly lost: string[] = [];
  readonly #restarts: boolean;
  #provisioner: Component | undefined;

  constructor(world: World, driver: FakeProvisioning, restarts: boolean) {
    this.world = world;
    this.driver = driver;
    this.#restarts = restarts;
  }

  start(): void {
    this.#provisioner = startProvisioner(this.world.env(this.#kube()));
  }

  async stop(): Promise<void> {
    await this.#provisioner?.stop();
  }

  /** The provisioner dies here, in the runs in which it does. */
  async mayRestart(): Promise<void> {
    if (!this.#restarts) return;
    await this.stop();
    this.start();
  }

  #kube(): KubeClient {
    const stage = this;
    return new Proxy(this.world.kube, {
      get(target, name: keyof KubeClient) {
        const member = target[name] as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => {
          const { kind } = args[0] as { readonly kind: string };
          if (stage.refusesVolumes && name === "create" && kind === "PersistentVolume") {
            const status = { kind: "Status", apiVersion: "v1", status: "Failure", code: 500 } as const;
            return Promise.reject(new KubeApiError({ ...status, reason: "InternalError", message: "etcd" }));
          }
          const at = stage.losesAnswers.indexOf(`${name} ${kind}`);
          if (at < 0) return member.apply(target, args);
          stage.lost.push(...stage.losesAnswers.splice(at, 1));
          return (member.apply(target, args) as Promise<unknown>).then(() => {
            throw new KubeTransportError(`${name} ${kind}: connection reset`);
          });
        };
      },
    });
  }

  async createClaim(node?: string): Promise<string> {
    const annotations = {
      ...aClaim().metadata?.annotations,
      ...(node === undefined ? {} : { [selected]: node }),
    };
    const { kube, signal } = this.world;
    const claim = await kube.create(resources.persistentVolumeClaims, aClaim({ annotations }), { signal });
    return `pvc-${claim.metadata.uid}`;
  }

  claim() {
    return this.world.kube.get(resources.persistentVolumeClaims, ref, { signal: this.world.signal });
  }

  async deleteClaim(): Promise<void> {
    const { kube, signal } = this.world;
    await kube.delete(resources.persistentVolumeClaims, ref, { signal });
    await this.#dropFinalizer("kubernetes.io/pvc-protection");
  }

  /** Somebody takes the intent off by hand. */
  forceIntentOff(): Promise<void> {
    return this.#dropFinalizer(intent);
  }

  async #dropFinalizer(finalizer: string): Promise<void> {
    const { kube, signal } = this.world;
    const finalizers = (await this.claim())?.metadata.finalizers;
    if (!finalizers?.includes(finalizer)) return;
    const body = { metadata: { finalizers: finalizers.filter((other) => other !== finalizer) } };
    await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
  }

  async volumes(): Promise<readonly Stored<PersistentVolume>[]> {
    return (await this.world.kube.list(resources.persistentVolumes, { signal: this.world.signal })).items;
  }

  asked(rpc: string): number {
    return this.world.cloud.calls.filter((call) => call.startsWith(`${rpc} `)).length;
  }

  /** Lets time pass until the driver has been asked so often. */
  async untilAsked(rpc: string, times = 1): Promise<void> {
    await this.world.eventually(`${rpc} ${times} times`, async () => this.asked(rpc) >= times);
  }

  async event(reason: string): Promise<string> {
    const { kube, signal } = this.world;
    const found = await this.world.eventually(`event ${reason}`, async () =>
      (await kube.list(resources.events, { signal })).items.find((event) => event.reason === reason),
    );
    return found.message ?? "";
  }

  /** Nothing is lost, nothing is owed. @param disks how many there are to be */
  async ends(disks: number): Promise<void> {
    const { cloud, kube, signal } = this.world;
    await this.world.eventually(`${disks} disks, each with its volume`, async () => {
      const claim = await this.claim();
      if ((claim?.metadata.finalizers ?? []).includes(intent)) return false;
      const volumes = await this.volumes();
      // The persistent-volume controller's part.
      for (const { metadata, spec, status } of volumes) {
        if (claim?.metadata.uid === spec?.claimRef?.uid || status?.phase === "Released") continue;
        const body = { status: { phase: "Released" } };
        const options = { signal, subresource: "status" } as const;
        await kube.patch(
          resources.persistentVolumes,
          { name: metadata.name },
          { type: "merge", body },
          options,
        );
      }
      const isHeld = volumes.some(
        (pv) => isDeleting(pv) && (pv.metadata.finalizers ?? []).includes(protection),
      );
      if (isHeld) return false;
      const handles = volumes.map(
        (pv) => pv.spec?.csi?.volumeHandle ?? pv.spec?.awsElasticBlockStore?.volumeID,
      );
      return cloud.disks.size === disks && [...cloud.disks.keys()].every((id) => handles.includes(id));
    });
    // And it stays so.
    const before = cloud.disks.size;
    await this.world.clock.advance(1_000_000);
    expect(cloud.disks.size).toBe(before);
  }
}

interface Story {
  readonly name: string;
  readonly storageClass?: ReturnType<typeof aStorageClass>;
  /** Disks that are to be there in the end. */
  readonly disks: number;
  tell(stage: Stage): Promise<void>;
}

const stories: readonly Story[] = [
  {
    name: "an uncertain answer, the claim still wanted",
    disks: 1,
    async tell(stage) {
      stage.world.cloud.next("CreateVolume", { lost: true });
      await stage.createClaim();
      await stage.untilAsked("CreateVolume");
      await stage.mayRestart();
    },
  },
  {
    name: "a claim deleted while CreateVolume is under way",
    disks: 0,
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { lost: true });
      await stage.createClaim("node-b");
      await stage.untilAsked("CreateVolume");
      await kube.delete(resources.nodes, { name: "node-b" }, { signal });
      await kube.delete(resources.csiNodes, { name: "node-b" }, { signal });
      await stage.mayRestart();
      await stage.world.eventually(
        "given back",
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
    async tell(stage) {
      const { kube, signal, cloud } = stage.world;
      cloud.next("CreateVolume", { code: "DEADLINE_EXCEEDED" }, { code: "RESOURCE_EXHAUSTED" });
      await stage.createClaim("node-b");
      await stage.world.eventually(
        "given back",
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
      await secretThenTimeout(stage);
      await stage.deleteClaim();
      await stage.mayRestart();
    },
  },
  {
    name: "the secret gone when the claim is deleted, and the driver needs it",
    storageClass: withSecret,
    disks: 0,
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
    async tell(stage) {
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
      async tell(stage) {
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
      async tell(stage) {
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
    async tell(stage) {
      loseNextClaimWrite(stage);
      await stage.createClaim();
      await stage.world.eventually("the answer lost", async () => stage.lost.length === 1);
      await stage.mayRestart();
    },
  },
  {
    name: "no answer to the write that takes the intent off, and the claim is deleted",
    disks: 0,
    async tell(stage) {
      loseNextClaimWrite(stage);
      await stage.createClaim();
      await stage.world.eventually("the answer lost", async () => stage.lost.length === 1);
      await stage.deleteClaim();
      await stage.mayRestart();
      await stage.ends(0);
      // What was stored is not looked for again, which would make it anew.
      expect(stage.asked("CreateVolume")).toBe(1);
    },
  },
  ...["delete PersistentVolume", "patch PersistentVolume", "get PersistentVolume"].map(
    (request): Story => ({
      name: `a volume that is deleted, no answer to: ${request}`,
      disks: 0,
      async tell(stage) {
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
    async tell(stage) {
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
  it.each(stories)("$name", async ({ storageClass = aStorageClass(), disks, tell }) => {
    const driver = new FakeProvisioning();
    const world = await sidecarWorld({}, { extend: driver.extend });
    await addNode(world, "node-a", "us-east-1a");
    await addNode(world, "node-b", "us-east-1b");
    await world.kube.create(resources.storageClasses, storageClass, { signal: world.signal });
    const stage = new Stage(world, driver, restarts);
    stage.start();
    await tell(stage);
    await stage.ends(disks);
    await stage.stop();
  });
});
