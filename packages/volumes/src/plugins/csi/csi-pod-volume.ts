/**
 * A CSI volume as it is published for a pod: through a PersistentVolume, or inline in the pod.
 * Source: docs/behaviour/csi-plugin.md 3, 9.3.
 */
import type { Pod, SecretReference } from "@longshore/kube";
import { inlineVolumeHandle } from "@longshore/storage";
import { mountOptionsOf } from "../../framework/mount-options.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { csiVolumeOf } from "./csi-node-context.ts";

/** `Persistent`: it outlives its pods. `Ephemeral`: NodePublishVolume makes it, NodeUnpublishVolume deletes it. */
export type CsiLifecycleMode = "Persistent" | "Ephemeral";

/** What NodePublishVolume says of a volume, whichever way it came. */
export interface CsiPodVolume {
  readonly lifecycle: CsiLifecycleMode;
  readonly driver: string;
  readonly volumeHandle: string;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly readOnly: boolean;
  readonly accessModes: readonly string[];
  readonly mountOptions: readonly string[];
  readonly nodePublishSecretRef: SecretReference | undefined;
}

/** @throws CsiVolumeError when the spec is not one of a CSI volume */
export function csiPodVolume(spec: VolumeSpec, pod: Pod): CsiPodVolume {
  return spec.volume?.csi == null ? persistentVolume(spec) : ephemeralVolume(spec, spec.volume.csi, pod);
}

function persistentVolume(spec: VolumeSpec): CsiPodVolume {
  const { pv, source } = csiVolumeOf(spec);
  const { driver, volumeHandle, fsType = "", volumeAttributes = {}, nodePublishSecretRef } = source;
  return {
    lifecycle: "Persistent",
    driver,
    volumeHandle,
    fsType,
    attributes: volumeAttributes,
    readOnly: spec.readOnly || source.readOnly === true,
    accessModes: pv.spec?.accessModes ?? [],
    mountOptions: mountOptionsOf(pv),
    nodePublishSecretRef,
  };
}

/** Its handle is made from pod and volume, so that each call names the same. Its Secret is in the pod's namespace. */
function ephemeralVolume(
  spec: VolumeSpec,
  source: NonNullable<NonNullable<VolumeSpec["volume"]>["csi"]>,
  pod: Pod,
): CsiPodVolume {
  const { driver, fsType = "", volumeAttributes = {}, readOnly = false, nodePublishSecretRef } = source;
  const { namespace = "", uid = "" } = pod.metadata ?? {};
  const name = nodePublishSecretRef?.name;
  return {
    lifecycle: "Ephemeral",
    driver,
    volumeHandle: inlineVolumeHandle(uid, specName(spec)),
    fsType,
    attributes: volumeAttributes,
    readOnly: spec.readOnly || readOnly,
    accessModes: ["ReadWriteOnce"],
    mountOptions: [],
    nodePublishSecretRef: name === undefined ? undefined : { name, namespace },
  };
}
