/**
 * The in-tree volume plugin `kubernetes.io/rbd`: images of a Ceph cluster. The node maps an image before it mounts it and
 * unmaps it afterwards; the controller only records who has it.
 */
import type { Pod } from "@longshore/kube";
import type { CloudCredentials } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { type DiskDescription, type DiskNames, unreadableName } from "../disk/disk-description.ts";
import { readSecret, secretPlaceOf } from "../disk/secrets.ts";
import { inTreeSourceOf } from "../disk/volume-source.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import { defaultPool, defaultUser, rbdProvisioning } from "./rbd-provisioning.ts";

const pluginName = "kubernetes.io/rbd";
const label = "Ceph RBD";
/** Between pool and image in the name of a directory. Source: upstream volume/rbd makePDNameInternal. */
const separator = "-image-";

const form = { field: "pool and image", expected: `names without / and :, the pool without ${separator}` };

const names: DiskNames = {
  ...form,
  diskIdOf(volumeName) {
    const [, pool = "", image] = /^([^:/]+):([^:/]+)$/.exec(volumeName) ?? [];
    if (image === undefined || pool.includes(separator)) throw unreadableName(form, volumeName);
    return `${pool}/${image}`;
  },
  volumeNameOf: ({ id }) => id.replace("/", ":"),
  directoryOf: (volumeName) => names.diskIdOf(volumeName).replace("/", separator),
  volumeNameIn(directory) {
    const at = directory.indexOf(separator);
    if (at < 1 || directory.includes("/")) return undefined;
    return `${directory.slice(0, at)}:${directory.slice(at + separator.length)}`;
  },
};

/** Ceph RBD. */
export const rbd: DiskDescription<"rbd"> = {
  pluginName,
  provider: "rbd",
  sourceField: "rbd",
  label,
  withoutCloud: "no Ceph cluster is configured: name one, or take kubernetes.io/rbd out of the cluster",
  readSource({ monitors, pool, image, fsType = "" }) {
    if (monitors.length === 0) {
      throw new InTreeVolumeError(`image ${image}: monitors is empty: name the monitors of the cluster`);
    }
    return { volumeName: `${pool || defaultPool}:${image}`, fsType };
  },
  sourceNamed(volumeName) {
    const [pool = "", image = ""] = volumeName.split(":");
    // Monitors are not on disk; nothing that unmounts asks one.
    return { rbd: { monitors: ["unknown"], pool, image } };
  },
  names,
  attached: { by: "node", credentialsOf },
  provisioning: rbdProvisioning(pluginName, label),
  expansion: "online",
};

/** User and key. The namespace of the secret is that of the pod where the volume names none. */
async function credentialsOf(
  spec: VolumeSpec,
  pod: Pod | undefined,
  host: VolumeHost,
  signal: AbortSignal,
): Promise<CloudCredentials> {
  const { user, secretRef } = inTreeSourceOf(spec, "rbd").source;
  if (secretRef?.name === undefined) {
    throw new InTreeVolumeError(
      `volume "${specName(spec)}": rbd.secretRef is missing: name a Secret of type ${pluginName} (keyring files of nodes are not read)`,
    );
  }
  const persistentNamespace = spec.persistentVolume?.spec?.rbd?.secretRef?.namespace;
  const place = secretPlaceOf(spec, secretRef.name, persistentNamespace, pod);
  const values = await readSecret(host, place, pluginName, signal);
  const key = values.key ?? Object.values(values)[0];
  if (key === undefined || key === "") {
    throw new InTreeVolumeError(`Secret ${place.namespace}/${place.name}: data.key is missing: add it`);
  }
  return { user: user || defaultUser, key };
}
