/** A cluster with a provisioner, for the stories of lost disks. */
import {
  isConflict,
  isDeleting,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type PersistentVolume,
  resources,
  type Stored,
  withoutFinalizer,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import type { FakeProvisioning } from "@longshore/testing/sidecars";
import { expect } from "vitest";
import { startProvisioner } from "../provisioner/provisioner.ts";
import { aClaim, type World } from "./world.ts";

/** The intent to make a volume, on its claim. */
export const intent = "longshore.dev/provisioning";
/** The annotation with the node that the scheduler chose. */
export const selected = "volume.kubernetes.io/selected-node";
/** The claim of the story. */
export const ref = { name: "data-web-0", namespace: "default" };
const protection = "external-provisioner.volume.kubernetes.io/finalizer";

/** A cluster with a provisioner in which a story happens. */
export class Stage {
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

  /** A user removes the intent by hand. */
  forceIntentOff(): Promise<void> {
    return this.#dropFinalizer(intent);
  }

  async #dropFinalizer(finalizer: string): Promise<void> {
    const { kube, signal } = this.world;
    for (;;) {
      const claim = await this.claim();
      if (claim?.metadata.finalizers?.includes(finalizer) !== true) return;
      const { finalizers } = withoutFinalizer(claim, finalizer).metadata;
      // With the version: the provisioner takes its own finalizer off at the same time.
      const body = {
        metadata: { resourceVersion: claim.metadata.resourceVersion, finalizers: finalizers ?? null },
      };
      try {
        await kube.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, { signal });
        return;
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
    }
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

  /** No disk is lost, no work is left. @param disks the expected number */
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
