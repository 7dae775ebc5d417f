/**
 * The API server is restored from a backup: disks, attachments and mounts have moved on, and objects have not. The operators do what
 * `docs/playbooks/control-plane-restored-mid-crossing.md` says.
 */
import {
  type CSINode,
  isNotFound,
  type PersistentVolume,
  type Pod,
  type Volume as PodVolume,
  resources,
  type Stored,
} from "@longshore/kube";
import { clusterPlugins, inTreeHandle } from "@longshore/local";
import { migratedPluginsAnnotation, migratedPluginsOf } from "@longshore/storage";
import { diskOf } from "../../contract-watch.ts";
import { worldOf } from "../../world.ts";
import { namespace, type Operation, type Operators } from "./operators.ts";

type Cluster = Operators["env"]["cluster"];
/** Within so long each agent that runs has written its CSINode again, in milliseconds. */
const agentsStateMs = 61_000;
type Volume = Stored<PersistentVolume>;
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
    pods: after.pods.filter((pod) => !before.pods.includes(pod)),
  });
  for (const volume of known) await operators.insist(() => makeKnown(operators, volume));
  await operators.env.clock.sleep(agentsStateMs, operators.signal);
  await operators.insist(() => settleAttachments(operators));
  operators.later(0, () => removeEmpty(operators, returned));
  await operators.decideAgain();
}

/** What the objects say of volumes. */
interface Seen {
  readonly volumes: readonly Volume[];
  /** The disks of those in use, and those that pods or their templates name themselves. */
  readonly disks: ReadonlySet<string>;
  /** The disks of all volumes, and those that pods or their templates name themselves. */
  readonly named: ReadonlySet<string>;
  /** UIDs of claims by their names. */
  readonly claims: ReadonlyMap<string, string>;
  readonly csiNodes: readonly Stored<CSINode>[];
  /** Names and UIDs of those on nodes. */
  readonly pods: readonly string[];
}

function seen(cluster: Cluster): Seen {
  const claims = cluster.objects(resources.persistentVolumeClaims);
  const volumes = cluster.objects(resources.persistentVolumes);
  const ofPods = disksOfPods(cluster);
  const disksOf = (some: readonly Volume[]) =>
    new Set([...some.flatMap((volume) => diskOfVolume(cluster, volume) ?? []), ...ofPods]);
  return {
    volumes,
    disks: disksOf(volumes.filter(isInUse)),
    named: disksOf(volumes),
    claims: new Map(claims.map(({ metadata: { name, uid } }) => [name, uid])),
    csiNodes: cluster.objects(resources.csiNodes),
    pods: cluster
      .objects(resources.pods)
      .filter(({ spec }) => spec?.nodeName !== undefined)
      .map(({ metadata: { name, uid } }) => `${name}/${uid}`),
  };
}

/** The disks that pods name themselves, or the templates of pods. */
function disksOfPods(cluster: Cluster): readonly string[] {
  const templates = cluster.objects(resources.statefulSets).map(({ spec }) => spec?.template);
  return [...cluster.objects(resources.pods), ...templates]
    .flatMap((pod) => pod?.spec?.volumes ?? [])
    .flatMap((volume) => diskOfSpec(cluster, volume) ?? []);
}

function listsSame(one: Stored<CSINode>, other: Stored<CSINode>): boolean {
  const listed = (csiNode: Stored<CSINode>) =>
    csiNode.metadata.annotations?.[migratedPluginsAnnotation] ?? "";
  return one.metadata.name === other.metadata.name && listed(one) === listed(other);
}

/**
 * Volumes that were made since: those whose claims are there, and those whose claims are lost, too; with the UIDs of all lost claims. What a
 * conversion has made since is none of them: the disk is named as it was before.
 */
function madeSince(cluster: Cluster, before: Seen, after: Seen) {
  const isThere = new Set(after.volumes.map(({ metadata }) => metadata.name));
  const isNamed = (volume: Volume) => after.named.has(diskOfVolume(cluster, volume) ?? "");
  const uids = new Set(after.claims.values());
  const made = before.volumes.filter((volume) => !isThere.has(volume.metadata.name) && !isNamed(volume));
  const claimOf = ({ spec }: Volume) => spec?.claimRef?.uid ?? "";
  const claimed = [...before.claims.values(), ...made.map(claimOf)];
  return {
    known: made.filter((volume) => isInUse(volume) && uids.has(claimOf(volume))),
    lost: made.filter((volume) => isInUse(volume) && !uids.has(claimOf(volume))),
    claims: claimed.filter((uid) => uid !== "" && !uids.has(uid)),
  };
}

function isInUse({ metadata, status }: Volume): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase === "Bound";
}

/**
 * Volumes that were given up since, and are there again: their disks are gone, or about to be. One that was converted since was not given up:
 * its disk was in use, by another volume or by a pod that named it.
 */
function returnedOf(cluster: Cluster, before: Seen, after: Seen): readonly Volume[] {
  const uids = new Set(before.volumes.filter(isInUse).map(({ metadata }) => metadata.uid));
  const isUsed = (volume: Volume) => before.disks.has(diskOfVolume(cluster, volume) ?? "");
  return after.volumes.filter(
    (volume) => isInUse(volume) && !uids.has(volume.metadata.uid) && !isUsed(volume),
  );
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
  const volumes = cluster.objects(resources.persistentVolumes);
  const isOf = (claim: string | undefined) =>
    claim !== undefined &&
    volumes.some((each) => each.spec?.claimRef?.name === claim && diskOfVolume(cluster, each) === disk);
  return cluster
    .objects(resources.pods)
    .filter(({ spec }) => spec?.nodeName === node)
    .some(
      (pod) =>
        claimsOf(pod).some(isOf) || pod.spec?.volumes?.some((volume) => diskOfSpec(cluster, volume) === disk),
    );
}

function nodeOf(cluster: Cluster, name: string) {
  return cluster.objects(resources.nodes).find(({ metadata }) => metadata.name === name);
}

/** Whether one of these names of attached volumes is that of the disk: between plugin and disk, each plugin has something of its own. */
function isNamed(cluster: Cluster, names: readonly string[], disk: string): boolean {
  const { name = disk } = cluster.cloud.disks().find(({ id }) => id === disk) ?? {};
  return names.some((each) => each.endsWith(disk) || each.endsWith(name));
}

/** The disk of a PersistentVolume. One of the Flexvolume driver has its disk's name. */
function diskOfVolume(cluster: Cluster, { metadata, spec }: Volume): string | undefined {
  return spec?.flexVolume == null ? diskOfSpec(cluster, spec) : metadata.name;
}

/** The disk that a volume names, or a pod itself. */
function diskOfSpec(cluster: Cluster, source: Volume["spec"] | PodVolume): string | undefined {
  const spec = source as Volume["spec"];
  const handle = inTreeHandle(spec) ?? spec?.csi?.volumeHandle;
  return handle === undefined ? undefined : diskOf(handle, worldOf(cluster));
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
