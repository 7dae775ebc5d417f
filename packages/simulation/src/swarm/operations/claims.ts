/** A claim in use is deleted, and its PersistentVolume, too: they go once no pod uses them, and the claim is made again. */
import {
  isAlreadyExists,
  isNotFound,
  type Pod,
  resources,
  type StatefulSet,
  type Stored,
} from "@longshore/kube";
import { clusterPlugin, inTreeHandle, writerClaims, writerSetName } from "@longshore/local";
import { diskOf } from "../../contract-watch.ts";
import { worldOf } from "../../world.ts";
import type { DeletedClaim } from "../claim-watch.ts";
import { nativeClaim } from "../workloads/native-writers.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";

/** A claim in use, and the set whose pods use it. */
interface Subject extends Omit<DeletedClaim, "isRetained"> {
  readonly set: string;
}

/** Its set is scaled to zero later, and up again once the claim is gone: its pods could be scheduled nowhere meanwhile. */
export const claimDeleted: Operation = async (operators, { target, ms, killMs, isOn, happens }) => {
  const { env, signal } = operators;
  const subjects = subjectsOf(operators);
  const subject = subjects[target % Math.max(1, subjects.length)];
  if (subject === undefined) return;
  const isRetained = killMs % 2 === 0;
  const { name, uid } = subject.claim.metadata;
  const volume = { name: subject.volume.metadata.name };
  const policy = isRetained ? ", with the policy Retain" : "";
  if (!happens(`delete claim ${name}${isOn ? " after its volume" : ""}, which pods use${policy}`)) return;
  const body = { spec: { persistentVolumeReclaimPolicy: isRetained ? "Retain" : "Delete" } };
  const { kube } = env.cluster;
  await kube.patch(resources.persistentVolumes, volume, { type: "merge", body }, { signal });
  const deleted = { ...subject, isRetained };
  env.onClaimDeleted(deleted);
  if (isOn) await kube.delete(resources.persistentVolumes, volume, { signal });
  await kube.delete(resources.persistentVolumeClaims, { namespace, name }, { uid, signal });
  let isDown = false;
  operators.later(ms, async () => {
    if (!isDown) await expectDown(operators, deleted);
    isDown = true;
    await makeAgain(operators, deleted);
  });
};

/** Of the sets' claims those that were made for them and are in use. */
function subjectsOf({ env: { cluster, plan } }: Operators): readonly Subject[] {
  // A conversion makes claims of its own, and a restore has old ones again: what goes with them is not the matter here.
  const isOther = (kind: string) => kind.endsWith("onversion") || kind === "restoredFromBackup";
  if (plan.operations.some(isOther)) return [];
  // Its pod could take the only node in the zone of another pod's disk, and its new disk would keep it there.
  if (plan.zones > 1 && plan.replicas > 1) return [];
  const hasSnapshots = plan.operations.includes("snapshotRestored");
  return cluster.objects(resources.persistentVolumeClaims).flatMap((claim) => {
    const { name } = claim.metadata;
    const set = cluster.objects(resources.statefulSets).find((each) => isOf(each, name));
    const volume = cluster
      .objects(resources.persistentVolumes)
      .find(({ metadata }) => metadata.name === claim.spec?.volumeName);
    // What is restored of a snapshot is compared with what its writer has written since.
    if (set === undefined || volume === undefined || (hasSnapshots && name === nativeClaim)) return [];
    if (claim.status?.phase !== "Bound" || claim.metadata.deletionTimestamp !== undefined) return [];
    const handle = inTreeHandle(volume.spec) ?? volume.spec?.csi?.volumeHandle ?? "";
    const disk = diskOf(handle, worldOf(cluster));
    const pods = cluster.objects(resources.pods).filter(({ spec }) => {
      const isUsed = spec?.volumes?.some((each) => each.persistentVolumeClaim?.claimName === name);
      return spec?.nodeName !== undefined && isUsed;
    });
    if (disk === undefined || pods.length === 0) return [];
    const users = new Set(pods.map(({ metadata }) => metadata.uid));
    return [
      { claim, volume, disk, users, writers: writersOf(set, name, plan.replicas), set: set.metadata.name },
    ];
  });
}

/** Whether the set's pods use this claim, and it was made for them. */
function isOf({ metadata, spec }: Stored<StatefulSet>, claim: string): boolean {
  const templates = spec?.volumeClaimTemplates ?? [];
  const prefixes = templates.map((each) => `${each.metadata?.name}-${metadata.name}-`);
  return (
    prefixes.some((prefix) => claim.startsWith(prefix) && /^\d+$/.test(claim.slice(prefix.length))) ||
    claim === `data-${metadata.name}`
  );
}

/** All pods of a set write to a claim that they share. */
function writersOf({ metadata: { name } }: Stored<StatefulSet>, claim: string, replicas: number) {
  return claim === `data-${name}`
    ? Array.from({ length: replicas }, (_, ordinal) => `${name}-${ordinal}`)
    : [claim.slice("data-".length)];
}

/**
 * A pod that was made while its claim was being deleted is scheduled nowhere, and its claim is not made again beside it: it goes, too, and
 * the set's controller is past making one.
 *
 * @throws while the claim or a pod of the set is there, or the controller has not seen that there are to be none
 */
async function expectDown(operators: Operators, { claim, set }: Subject): Promise<void> {
  const { cluster } = operators.env;
  // Another operation may have scaled it meanwhile.
  await scaleSet(operators, set, 0);
  const { uid } = claim.metadata;
  const pods = cluster.objects(resources.pods).filter((pod) => isPodOf(set, pod));
  if (cluster.objects(resources.persistentVolumeClaims).some(({ metadata }) => metadata.uid === uid))
    throw new Error(`claim ${claim.metadata.name} is there`);
  if (pods.length > 0) throw new Error(`${pods.length} pods of ${set} are there`);
  const stored = cluster.objects(resources.statefulSets).find(({ metadata }) => metadata.name === set);
  const { observedGeneration, replicas } = stored?.status ?? {};
  if (observedGeneration !== stored?.metadata.generation || replicas !== 0)
    throw new Error(`${set} is not seen to have no pods`);
}

function isPodOf(set: string, { metadata }: Stored<Pod>): boolean {
  return metadata.ownerReferences?.some(({ kind, name }) => kind === "StatefulSet" && name === set) === true;
}

/** @throws while something of the old one is left */
async function makeAgain(operators: Operators, deleted: Subject & DeletedClaim): Promise<void> {
  const { cluster, plan } = operators.env;
  if (deleted.isRetained) await removeRetained(operators, deleted);
  const plugin = plan.plugins.find((each) => writerSetName(each) === deleted.set);
  const made = plugin === undefined ? [] : writerClaims(plugin);
  for (const claim of made) {
    const { signal } = operators;
    await cluster.kube.create(resources.persistentVolumeClaims, claim, { signal }).catch((error) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }
  await scaleSet(operators, deleted.set, plugin === undefined ? 1 : plan.replicas);
}

/** The volume first, then the disk, which nothing else ever deletes. @throws while the volume is there, or the disk attached */
async function removeRetained({ env, signal }: Operators, { volume, disk }: DeletedClaim): Promise<void> {
  const { cluster, plan } = env;
  const { name, uid } = volume.metadata;
  const ref = { name };
  if (cluster.objects(resources.persistentVolumes).some(({ metadata }) => metadata.uid === uid)) {
    await cluster.kube.delete(resources.persistentVolumes, ref, { uid, signal }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
    throw new Error(`volume ${name} is there`);
  }
  env.mayGo(disk);
  for (const { name: provider } of plan.plugins.map(clusterPlugin)) {
    const cloud = cluster.cloud.forCaller({ path: "in-tree", component: "operators", provider });
    if ((await cloud.listDisks(signal)).some(({ id }) => id === disk)) await cloud.deleteDisk(disk, signal);
  }
}

async function scaleSet({ env, signal }: Operators, name: string, replicas: number): Promise<void> {
  const patch = { type: "merge", body: { spec: { replicas } } } as const;
  await env.cluster.kube.patch(resources.statefulSets, { namespace, name }, patch, { signal });
}
