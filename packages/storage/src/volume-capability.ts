/** How a volume is to be accessed, in CSI's words (docs/behaviour/sidecars.md 3.1, docs/behaviour/csi-plugin.md 12). */
import {
  type MessageInitShape,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapabilitySchema,
} from "@longshore/csi";
import type { PersistentVolumeSpec } from "@longshore/kube";

/** A capability ready to be put into a request. */
export type CapabilityInit = MessageInitShape<typeof VolumeCapabilitySchema>;

/** The access modes of a volume cannot be converted into a CSI access mode. */
export class AccessModeError extends Error {
  override readonly name = "AccessModeError";
}

/** What a driver says about access modes. */
export interface AccessModeSupport {
  /** The driver has SINGLE_NODE_MULTI_WRITER: it distinguishes one writer on a node from several. */
  readonly singleNodeMultiWriter: boolean;
}

/** One Kubernetes access mode as CSI knows it; UNKNOWN for a mode that does not exist. */
export function csiAccessMode(accessMode: string, { singleNodeMultiWriter }: AccessModeSupport): Mode {
  switch (accessMode) {
    case "ReadWriteOnce":
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_MULTI_WRITER : Mode.SINGLE_NODE_WRITER;
    case "ReadWriteOncePod":
      return singleNodeMultiWriter ? Mode.SINGLE_NODE_SINGLE_WRITER : Mode.SINGLE_NODE_WRITER;
    case "ReadOnlyMany":
      return Mode.MULTI_NODE_READER_ONLY;
    case "ReadWriteMany":
      return Mode.MULTI_NODE_MULTI_WRITER;
    default:
      return Mode.UNKNOWN;
  }
}

/**
 * The one mode with which a volume is attached.
 * @throws AccessModeError for a combination that has no counterpart in CSI
 */
export function attachAccessMode(accessModes: readonly string[], support: AccessModeSupport): Mode {
  const has = (mode: string) => accessModes.includes(mode);
  const all = accessModes.join(", ");
  if (has("ReadWriteOncePod")) {
    if (accessModes.some((mode) => mode !== "ReadWriteOncePod")) {
      throw new AccessModeError(
        `spec.accessModes ${all}: ReadWriteOncePod cannot be combined, remove the others`,
      );
    }
    return csiAccessMode("ReadWriteOncePod", support);
  }
  // It wins over ReadWriteOnce and ReadOnlyMany, as in external-attacher (docs/behaviour/sidecars.md 3.1).
  if (has("ReadWriteMany")) return Mode.MULTI_NODE_MULTI_WRITER;
  if (has("ReadOnlyMany") && has("ReadWriteOnce")) {
    throw new AccessModeError(`spec.accessModes ${all}: CSI has no mode that is both, remove one`);
  }
  if (has("ReadOnlyMany")) return Mode.MULTI_NODE_READER_ONLY;
  if (has("ReadWriteOnce")) return csiAccessMode("ReadWriteOnce", support);
  throw new AccessModeError(`spec.accessModes [${all}]: no known access mode, set one of ReadWriteOnce, …`);
}

/**
 * The capability with which a CSI volume is attached.
 * @param defaultFsType file system of a volume that names none
 * @throws AccessModeError for access modes that CSI does not know
 */
export function attachCapability(
  pvSpec: PersistentVolumeSpec,
  support: AccessModeSupport,
  defaultFsType = "",
): CapabilityInit {
  if (pvSpec.csi === undefined || pvSpec.csi === null) {
    throw new AccessModeError("volume has no spec.csi: translate it first");
  }
  const accessMode = { mode: attachAccessMode(pvSpec.accessModes ?? [], support) };
  if (pvSpec.volumeMode === "Block") return { accessMode, accessType: { case: "block", value: {} } };
  const fsType = pvSpec.csi.fsType || defaultFsType;
  const value = { fsType, mountFlags: [...(pvSpec.mountOptions ?? [])] };
  return { accessMode, accessType: { case: "mount", value } };
}

/** The capabilities that a new volume must have all of: one for each access mode of its claim. */
export function claimCapabilities(
  accessModes: readonly string[],
  volumeMode: string | undefined,
  support: AccessModeSupport,
  mount: { readonly fsType: string; readonly mountOptions: readonly string[] },
): CapabilityInit[] {
  return accessModes.map((name): CapabilityInit => {
    const accessMode = { mode: csiAccessMode(name, support) };
    if (volumeMode === "Block") return { accessMode, accessType: { case: "block", value: {} } };
    const value = { fsType: mount.fsType, mountFlags: [...mount.mountOptions] };
    return { accessMode, accessType: { case: "mount", value } };
  });
}
