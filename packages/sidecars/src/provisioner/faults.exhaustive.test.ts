/**
 * Claims come and go while the API server, the driver and the provisioner itself fail at random. Once that is over,
 * every claim that is wanted has its disk, and there is no other disk. The seed determines each run.
 */
import {
  isDeleting,
  isNotFound,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type PersistentVolume,
  resources,
  type Stored,
  updateWithRetry,
} from "@longshore/kube";
import { type Random, SeededRandom } from "@longshore/runtime";
import { FakeProvisioning } from "@longshore/testing/sidecars";
import { expect, it } from "vitest";
import { aClaim, addNode, aStorageClass, sidecarWorld, type World } from "../testing/world.ts";
import { startProvisioner } from "./provisioner.ts";

const namespace = "default";
const ours = ["longshore.dev/provisioning", "external-provisioner.volume.kubernetes.io/finalizer"];
const seeds = Array.from({ length: 20 }, (_, n) => n + 1);

/** How a request to the API server goes wrong. */
const refusals = [
  { code: 500, reason: "InternalError" },
  { code: 429, reason: "TooManyRequests" },
  { code: 409, reason: "Conflict" },
  { code: 504, reason: "Timeout" },
] as const;

/** One request in six fails while `isOn`, half of them after they were done. */
function failing(kube: KubeClient, random: Random, isOn: () => boolean): KubeClient {
  return new Proxy(kube, {
    get(target, name: keyof KubeClient) {
      const member = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const { kind } = args[0] as { readonly kind: string };
        const isSpared = name === "watch" || name === "servedVersion" || kind === "Event";
        if (isSpared || !isOn() || random.below(6, "fault") > 0) return member.apply(target, args);
        const refusal = refusals[random.below(refusals.length, "kind of fault")];
        if (random.below(2, "done?") === 0 && refusal !== undefined) {
          const status = { kind: "Status", apiVersion: "v1", status: "Failure", message: "a fault" } as const;
          return Promise.reject(new KubeApiError({ ...status, ...refusal }));
        }
        return (member.apply(target, args) as Promise<unknown>).then(() => {
          throw new KubeTransportError("connection reset");
        });
      };
    },
  });
}

const endings = [
  { lost: true },
  { code: "UNAVAILABLE" },
  { code: "ABORTED" },
  { code: "INTERNAL" },
  { code: "UNAUTHENTICATED" },
  { code: "DEADLINE_EXCEEDED" },
] as const;

const claimsOf = async ({ kube, signal }: World) =>
  (await kube.list(resources.persistentVolumeClaims, { signal })).items;
const pvsOf = async ({ kube, signal }: World) =>
  (await kube.list(resources.persistentVolumes, { signal })).items;

/** What the persistent-volume controller and the protection of claims and volumes do, once. */
async function others(world: World): Promise<void> {
  const { kube, signal } = world;
  const status = { signal, subresource: "status" } as const;
  const merge = (body: object) => ({ type: "merge", body }) as const;
  const ignoreGone = (error: unknown) => {
    if (!isNotFound(error)) throw error;
  };
  const claims = await claimsOf(world);
  for (const pv of await pvsOf(world)) {
    const ref = { name: pv.metadata.name };
    const claim = claims.find(({ metadata }) => metadata.uid === pv.spec?.claimRef?.uid);
    const phase = claim === undefined ? "Released" : "Bound";
    if (pv.status?.phase !== phase) {
      await kube
        .patch(resources.persistentVolumes, ref, merge({ status: { phase } }), status)
        .catch(ignoreGone);
    }
    if (claim !== undefined && !claim.spec?.volumeName && !isDeleting(claim)) {
      const claimRef = { name: claim.metadata.name, namespace };
      const body = { spec: { volumeName: pv.metadata.name } };
      await kube.patch(resources.persistentVolumeClaims, claimRef, merge(body), { signal }).catch(ignoreGone);
    }
    await drop(world, pv, "kubernetes.io/pv-protection");
  }
}

async function drop({ kube, signal }: World, pv: Stored<PersistentVolume>, finalizer: string): Promise<void> {
  const at = (pv.metadata.finalizers ?? []).indexOf(finalizer);
  if (!isDeleting(pv) || at < 0) return;
  const path = `/metadata/finalizers/${at}`;
  const body = [
    { op: "test", path, value: finalizer },
    { op: "remove", path },
  ];
  const ref = { name: pv.metadata.name };
  // Changed meanwhile: the next round does it.
  await kube.patch(resources.persistentVolumes, ref, { type: "json", body }, { signal }).catch(() => {});
}

async function deleteClaim({ kube, signal }: World, name: string): Promise<void> {
  const ref = { name, namespace };
  await kube.delete(resources.persistentVolumeClaims, ref, { signal });
  await updateWithRetry(
    kube,
    resources.persistentVolumeClaims,
    ref,
    (claim) => {
      const finalizers = claim.metadata.finalizers ?? [];
      const kept = finalizers.filter((finalizer) => finalizer !== "kubernetes.io/pvc-protection");
      if (kept.length === finalizers.length) return undefined;
      return { ...claim, metadata: { ...claim.metadata, finalizers: kept } };
    },
    { signal },
  );
}

it.each(seeds)("no disk is lost and none is missing after faults (seed %i)", async (seed) => {
  const random = new SeededRandom(seed);
  const driver = new FakeProvisioning();
  const world = await sidecarWorld({}, { extend: driver.extend });
  const { kube, signal, cloud, clock } = world;
  await addNode(world, "node-a", "us-east-1a");
  await kube.create(resources.storageClasses, aStorageClass(), { signal });
  let isFaulty = true;
  const start = () => startProvisioner(world.env(failing(kube, random.fork("kube"), () => isFaulty)));
  let provisioner = start();
  const wanted = new Set<string>();
  for (let round = 0; round < 40; round++) {
    const name = `claim-${round}`;
    if (random.below(2, "create?") === 0) {
      await kube.create(resources.persistentVolumeClaims, aClaim({ name }), { signal });
      wanted.add(name);
    }
    const victim = [...wanted][random.below(Math.max(1, wanted.size * 2), "delete?")];
    if (victim !== undefined) {
      wanted.delete(victim);
      await deleteClaim(world, victim);
    }
    for (const rpc of ["CreateVolume", "DeleteVolume"]) {
      const ending = endings[random.below(endings.length * 2, "driver")];
      if (ending !== undefined) cloud.next(rpc, ending);
    }
    if (random.below(8, "restart?") === 0) {
      await provisioner.stop();
      provisioner = start();
    }
    await clock.advance(random.below(5000, "pause"));
    await others(world);
  }
  isFaulty = false;
  cloud.heal();
  await world.eventually("all is well", async () => {
    await others(world);
    const [claims, pvs] = [await claimsOf(world), await pvsOf(world)];
    const finalizers = [...claims, ...pvs.filter(isDeleting)].flatMap(
      ({ metadata }) => metadata.finalizers ?? [],
    );
    const handles = pvs.map((pv) => pv.spec?.csi?.volumeHandle ?? "").sort();
    return (
      claims.length === wanted.size &&
      claims.every(({ metadata, spec }) => wanted.has(metadata.name) && spec?.volumeName) &&
      pvs.length === wanted.size &&
      !finalizers.some((finalizer) => ours.includes(finalizer)) &&
      handles.join() === [...cloud.disks.keys()].sort().join()
    );
  });
  expect(cloud.disks.size).toBe(wanted.size);
  await provisioner.stop();
});
