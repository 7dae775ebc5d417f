/**
 * From a pod's volume to the spec that plugins take: claim and PersistentVolume are read live, and
 * the spec is translated when its plugin has changed over to CSI. Source: docs/behaviour/node-agent.md 4.2.
 */
import {
  isDeleting,
  type KubeClient,
  type PersistentVolumeClaim,
  type Pod,
  resources,
  type Stored,
  type Volume,
} from "@longshore/kube";
import type { MigratedPluginManager } from "../../../csimigration/migrated-plugin-manager.ts";
import {
  isBlockSpec,
  specOfPersistentVolume,
  specOfVolume,
  type VolumeSpec,
} from "../../../framework/volume-spec.ts";

/** A volume of a pod cannot be mounted as things stand; says which object and why. */
export class PodVolumeError extends Error {
  override readonly name = "PodVolumeError";
}

/** The pod's volumes that its containers use. */
export function usedVolumes(pod: Pod): readonly Volume[] {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  const used = new Set(
    containers.flatMap((container) => [
      ...(container.volumeMounts ?? []).map(({ name }) => name),
      ...(container.volumeDevices ?? []).map(({ name }) => name),
    ]),
  );
  return (pod.spec?.volumes ?? []).filter(({ name }) => used.has(name));
}

/** A spec for plugins, and the in-tree plugin it came from. */
export interface PodVolumeSpec {
  readonly spec: VolumeSpec;
  readonly origin: string | undefined;
}

/** Builds the spec of a pod's volume. @throws PodVolumeError, SpecTranslationError */
export async function podVolumeSpec(
  env: { readonly kube: KubeClient; readonly migration: MigratedPluginManager },
  pod: Stored<Pod>,
  volume: Volume,
  signal: AbortSignal,
): Promise<PodVolumeSpec> {
  const claim = await claimOf(env.kube, pod, volume, signal);
  const untranslated =
    claim === undefined ? inlineSpec(volume) : await claimedSpec(env.kube, claim, volume, signal);
  const origin = env.migration.inTreePluginOf(untranslated);
  const spec = env.migration.isMigratable(untranslated)
    ? env.migration.translateInTreeSpecToCSI(untranslated, pod.metadata.namespace ?? "")
    : untranslated;
  requireUsedAs(pod, volume, spec);
  return { spec, origin };
}

function inlineSpec(volume: Volume): VolumeSpec {
  return { ...specOfVolume(volume), readOnly: volume.awsElasticBlockStore?.readOnly === true };
}

async function claimOf(
  kube: KubeClient,
  pod: Stored<Pod>,
  volume: Volume,
  signal: AbortSignal,
): Promise<Stored<PersistentVolumeClaim> | undefined> {
  const name =
    volume.persistentVolumeClaim?.claimName ??
    (volume.ephemeral == null ? undefined : `${pod.metadata.name}-${volume.name}`);
  if (name === undefined) return undefined;
  const namespace = pod.metadata.namespace ?? "";
  const claim = await kube.get(resources.persistentVolumeClaims, { namespace, name }, { signal });
  const what = `PersistentVolumeClaim ${namespace}/${name}`;
  if (claim === undefined) throw new PodVolumeError(`${what} does not exist: create it`);
  const owned = claim.metadata.ownerReferences?.some(
    (o) => o.controller === true && o.uid === pod.metadata.uid,
  );
  if (volume.ephemeral != null && owned !== true) {
    throw new PodVolumeError(`${what} was not created for pod ${pod.metadata.name}: delete or rename it`);
  }
  if (isDeleting(claim)) throw new PodVolumeError(`${what}: PVC is being deleted`);
  if (claim.status?.phase !== "Bound" || (claim.spec?.volumeName ?? "") === "") {
    throw new PodVolumeError(`${what} is not bound to a PersistentVolume yet`);
  }
  return claim;
}

async function claimedSpec(
  kube: KubeClient,
  claim: Stored<PersistentVolumeClaim>,
  volume: Volume,
  signal: AbortSignal,
): Promise<VolumeSpec> {
  const name = claim.spec?.volumeName ?? "";
  const pv = await kube.get(resources.persistentVolumes, { name }, { signal });
  if (pv === undefined) throw new PodVolumeError(`PersistentVolume ${name} does not exist`);
  if (pv.spec?.claimRef?.uid !== claim.metadata.uid) {
    throw new PodVolumeError(
      `PersistentVolume ${name}: spec.claimRef is not PersistentVolumeClaim ${claim.metadata.name} (uid ${claim.metadata.uid})`,
    );
  }
  return specOfPersistentVolume(pv, volume.persistentVolumeClaim?.readOnly === true);
}

/** @throws PodVolumeError for a device in `volumeMounts`, or a file system in `volumeDevices` */
function requireUsedAs(pod: Stored<Pod>, volume: Volume, spec: VolumeSpec): void {
  const isBlock = isBlockSpec(spec);
  const [wrong, right] = isBlock ? wrongForDevices : wrongForFileSystems;
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  for (const container of containers) {
    if (container[wrong]?.some(({ name }) => name === volume.name) !== true) continue;
    throw new PodVolumeError(
      `pod ${pod.metadata.namespace}/${pod.metadata.name}, container ${container.name}, ${wrong}: volume ${volume.name} has volumeMode ${isBlock ? "Block" : "Filesystem"}, so it belongs into ${right}`,
    );
  }
}

const wrongForDevices = ["volumeMounts", "volumeDevices"] as const;
const wrongForFileSystems = ["volumeDevices", "volumeMounts"] as const;
