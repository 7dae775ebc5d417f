/**
 * The API server is restored from a backup: disks, attachments and mounts have moved on, and objects have not. The operators do what
 * `docs/playbooks/control-plane-restored-mid-crossing.md` says.
 */
import { isNotFound, type Pod, resources, type Stored } from "@longshore/kube";
import { clusterPlugins } from "@longshore/local";
import { migratedPluginsOf } from "@longshore/storage";
import { worldOf } from "../../world.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";
import {
  carriedSince,
  diskOfSpec,
  diskOfVolume,
  emptiedPods,
  listsSame,
  madeSince,
  returnedOf,
  seen,
  type Volume,
} from "./restored-view.ts";

type Cluster = Operators["env"]["cluster"];
/** Within so long each agent that runs has written its CSINode again, in milliseconds. */
const agentsStateMs = 61_000;
type Backup = ReturnType<Cluster["backUp"]>;

/** A backup is made now, and the API server is restored from it later. */
export const restoredFromBackup: Operation = (operators, { name, ms, happens }) => {
  const { cluster } = operators.env;
  if (!happens(`back the API server up, and restore it after ${ms} ms`)) return;
  const backup = cluster.backUp();
  operators.later(ms, async () => {
    operators.change(() => operators.withoutControlPlane(() => restore(operators, name, backup)));
    operators.change(() => operators.convertAgain());
  });
};

async function restore(operators: Operators, name: string, backup: Backup): Promise<void> {
  const { cluster, random, onRestored } = operators.env;
  const before = seen(cluster);
  cluster.restore(backup, random.fork(`restored API server ${name}`));
  const after = seen(cluster);
  const returned = returnedOf(cluster, before, after);
  const { known, lost, claims } = madeSince(cluster, before, after);
  onRestored({
    claims,
    disks: lost.flatMap((volume) => diskOfVolume(cluster, volume) ?? []),
    again: {
      claims: after.claims.values(),
      disks: after.volumes.flatMap((volume) => diskOfVolume(cluster, volume) ?? []),
    },
    returned: returned.map(({ metadata }) => metadata.uid),
    csiNodes: after.csiNodes.filter((csiNode) => !before.csiNodes.some((each) => listsSame(each, csiNode))),
    pods: emptiedPods(before, after),
  });
  const carried = carriedSince(before, after);
  if (carried.size > 0) await withoutAgents(operators, () => removePods(operators, carried));
  for (const volume of known) await operators.insist(() => makeKnown(operators, volume));
  await operators.env.clock.sleep(agentsStateMs, operators.signal);
  await operators.insist(() => settleAttachments(operators));
  await operators.insist(async () => expectUnmounted(cluster, carried));
  operators.later(0, () => removeEmpty(operators, returned));
  await operators.decideAgain();
}

/** Stops the agents that run, does the work, and starts them again. */
async function withoutAgents(operators: Operators, work: () => Promise<void>): Promise<void> {
  const { cluster, crash } = operators.env;
  const names = cluster.config.nodes.map(({ name }) => name).filter((name) => cluster.isRunning(name));
  for (const name of names) crash(name);
  await operators.insist(work);
  for (const name of names) await operators.insist(() => operators.start(name));
}

/**
 * Pods of the backup that use these disks as other volumes than their nodes do now. Where no controller attaches the disk nothing has the new
 * mount wait for the end of the old one: an agent that saw such a pod would use the disk as both.
 */
async function removePods(
  { env: { cluster }, signal }: Operators,
  disks: ReadonlySet<string>,
): Promise<void> {
  for (const pod of cluster.objects(resources.pods)) {
    if (!disksOfPod(cluster, pod).some((disk) => disks.has(disk))) continue;
    const { name, uid } = pod.metadata;
    const options = { gracePeriodSeconds: 0, uid, signal };
    await cluster.kube.delete(resources.pods, { namespace, name }, options).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

/** @throws while a node has one of these disks mounted */
function expectUnmounted(cluster: Cluster, disks: ReadonlySet<string>): void {
  const { attachments, mounts } = worldOf(cluster);
  for (const { diskId, nodeName, devicePath } of attachments) {
    const isMounted = (mounts.get(nodeName) ?? []).some(({ source }) => source === devicePath);
    if (disks.has(diskId) && isMounted) throw new Error(`${diskId} is mounted on ${nodeName}`);
  }
}

/** A volume with its handle and the name of its claim. */
async function makeKnown({ env, signal }: Operators, { metadata, spec }: Volume): Promise<void> {
  const { name, annotations = {}, labels = {} } = metadata;
  const { uid: _uid, resourceVersion: _version, ...claimRef } = spec?.claimRef ?? {};
  const { kube } = env.cluster;
  if ((await kube.get(resources.persistentVolumes, { name }, { signal })) !== undefined) return;
  const volume = { metadata: { name, annotations, labels }, spec: { ...spec, claimRef } };
  await kube.create(resources.persistentVolumes, volume, { signal });
}

/**
 * What is attached where no object says so is detached, once its node has unmounted it; what is mounted is given up by no object.
 * @throws while the nodes have to unmount, or to say what they have mounted
 */
async function settleAttachments(operators: Operators): Promise<void> {
  const { env } = operators;
  await removeOthersPaths(operators);
  const { cluster } = env;
  const world = worldOf(cluster);
  const open: string[] = [];
  for (const { diskId, nodeName, devicePath } of world.attachments) {
    // What nodes attach themselves no object ever says.
    if (!env.isPublished(diskId, nodeName)) continue;
    const at = { disk: diskId, node: nodeName };
    const isMounted = (world.mounts.get(nodeName) ?? []).some(({ source }) => source === devicePath);
    if (isMounted && !isStated(cluster, at)) open.push(`${nodeName} does not say that it uses ${diskId}`);
    if (isMounted) await keepAttached(operators, at);
    if (isUsed(cluster, at) || isRecorded(cluster, at)) continue;
    if (isMounted) open.push(`${diskId} is mounted on ${nodeName}`);
    else await env.detach(diskId, nodeName);
  }
  if (open.length > 0) throw new Error(open.join("; "));
}

/**
 * On a node that does not list a plugin as migrated, its volumes are attached in-tree: VolumeAttachments of them are of before a rollback, and
 * go without a detach.
 */
async function removeOthersPaths({ env: { cluster }, signal }: Operators): Promise<void> {
  const volumes = cluster.objects(resources.persistentVolumes);
  const csiNodes = cluster.objects(resources.csiNodes);
  for (const { metadata, spec } of cluster.objects(resources.volumeAttachments)) {
    const { persistentVolumeName, inlineVolumeSpec } = spec.source;
    const volume = volumes.find((each) => each.metadata.name === persistentVolumeName);
    // What a driver has made for itself is CSI's in any case; what a pod names itself was translated.
    if (volume?.spec?.csi != null || (volume === undefined && inlineVolumeSpec == null)) continue;
    const plugin = clusterPlugins.find(({ driverName }) => driverName === spec.attacher)?.inTreeName ?? "";
    const csiNode = csiNodes.find((each) => each.metadata.name === spec.nodeName);
    if (csiNode === undefined || migratedPluginsOf(csiNode).has(plugin)) continue;
    const { name } = metadata;
    const body = { metadata: { finalizers: null } };
    await cluster.kube.patch(resources.volumeAttachments, { name }, { type: "merge", body }, { signal });
    await cluster.kube.delete(resources.volumeAttachments, { name }, { signal }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

/** A disk and a node. */
interface Place {
  readonly disk: string;
  readonly node: string;
}

/** Whether the node says itself that it uses the disk. */
function isStated(cluster: Cluster, { disk, node }: Place): boolean {
  return isNamed(cluster, nodeOf(cluster, node)?.status?.volumesInUse ?? [], disk);
}

/** The attachment was about to be deleted at the time of the backup, and the disk is in use again: nothing may act on that deletion. */
async function keepAttached({ env: { cluster }, signal }: Operators, at: Place): Promise<void> {
  for (const { metadata } of attachmentsOf(cluster, at)) {
    if (metadata.deletionTimestamp === undefined) continue;
    const body = { metadata: { finalizers: null } };
    const { name } = metadata;
    await cluster.kube.patch(resources.volumeAttachments, { name }, { type: "merge", body }, { signal });
  }
}

/** Whether an object says that the disk is attached there. */
function isRecorded(cluster: Cluster, at: Place): boolean {
  const attached = nodeOf(cluster, at.node)?.status?.volumesAttached ?? [];
  const names = attached.map(({ name }) => name);
  return attachmentsOf(cluster, at).length > 0 || isNamed(cluster, names, at.disk);
}

function attachmentsOf(cluster: Cluster, { disk, node }: Place) {
  const volumes = cluster.objects(resources.persistentVolumes);
  return cluster.objects(resources.volumeAttachments).filter(({ spec }) => {
    const { persistentVolumeName, inlineVolumeSpec } = spec.source;
    const named = volumes.find(({ metadata }) => metadata.name === persistentVolumeName)?.spec;
    return spec.nodeName === node && diskOfSpec(cluster, inlineVolumeSpec ?? named) === disk;
  });
}

/** Whether a pod on the node uses the disk. */
function isUsed(cluster: Cluster, { disk, node }: Place): boolean {
  return cluster
    .objects(resources.pods)
    .some((pod) => pod.spec?.nodeName === node && disksOfPod(cluster, pod).includes(disk));
}

function disksOfPod(cluster: Cluster, pod: Stored<Pod>): readonly string[] {
  const claims = claimsOf(pod);
  const volumes = cluster
    .objects(resources.persistentVolumes)
    .filter(({ spec }) => claims.includes(spec?.claimRef?.name ?? ""));
  return [
    ...volumes.flatMap((volume) => diskOfVolume(cluster, volume) ?? []),
    ...(pod.spec?.volumes ?? []).flatMap((volume) => diskOfSpec(cluster, volume) ?? []),
  ];
}

function nodeOf(cluster: Cluster, name: string) {
  return cluster.objects(resources.nodes).find(({ metadata }) => metadata.name === name);
}

/** Whether one of these names of attached volumes is that of the disk: between plugin and disk, each plugin has something of its own. */
function isNamed(cluster: Cluster, names: readonly string[], disk: string): boolean {
  const { name = disk } = cluster.cloud.disks().find(({ id }) => id === disk) ?? {};
  return names.some((each) => each.endsWith(disk) || each.endsWith(name));
}

/** Claims whose volumes have no disk any more are deleted once more, with the pods that use them. @throws while one is there */
async function removeEmpty(operators: Operators, returned: readonly Volume[]): Promise<void> {
  const { cluster } = operators.env;
  const uids = new Set(returned.map(({ metadata }) => metadata.uid));
  const left = cluster.objects(resources.persistentVolumes).filter(({ metadata }) => uids.has(metadata.uid));
  for (const { spec } of left) {
    const { name = "", uid = "" } = spec?.claimRef ?? {};
    if (seen(cluster).claims.get(name) !== uid) continue;
    for (const pod of cluster.objects(resources.pods)) {
      if (claimsOf(pod).includes(name)) await operators.deletePod(pod.metadata.name);
    }
    const options = { signal: operators.signal, uid };
    await cluster.kube.delete(resources.persistentVolumeClaims, { namespace, name }, options);
  }
  if (left.length > 0) throw new Error(`${left.length} volumes without disks are left`);
}

function claimsOf({ metadata, spec }: Stored<Pod>): readonly (string | undefined)[] {
  return (spec?.volumes ?? []).map(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName ?? (ephemeral && `${metadata.name}-${name}`),
  );
}
