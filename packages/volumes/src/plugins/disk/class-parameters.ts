/** What classes and claims ask of an in-tree provisioner; each field that it does not know is refused. */
import { parseQuantity } from "@longshore/kube";
import type { VolumeOptions } from "../../framework/volume-plugin.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

const unitBytes = { MiB: 1024n ** 2n, GiB: 1024n ** 3n } as const;

/** What providers measure disks in. */
export type SizeUnit = keyof typeof unitBytes;

/**
 * The storage class's parameters by their names in lower case; keys are matched without regard to case.
 * `csi.storage.k8s.io/fstype` counts as `fstype`.
 *
 * @throws InTreeVolumeError for a parameter that is not known
 */
export function classParameters<K extends string>(
  pluginName: string,
  parameters: Readonly<Record<string, string>>,
  known: readonly K[],
): Readonly<Partial<Record<K, string>>> {
  const found: Partial<Record<K, string>> = {};
  for (const [name, value] of Object.entries(parameters)) {
    const key = name.toLowerCase().replace("csi.storage.k8s.io/", "");
    const match = known.find((candidate) => candidate === key);
    if (match === undefined || (key !== name.toLowerCase() && key !== "fstype")) {
      throw new InTreeVolumeError(
        `invalid option "${name}" for volume plugin ${pluginName}: remove it from the StorageClass`,
      );
    }
    found[match] = value;
  }
  return found;
}

/** `zone` or `zones` of a class. @throws InTreeVolumeError when both are given, or a zone has no name */
export function parameterZones(parameters: {
  readonly zone?: string;
  readonly zones?: string;
}): readonly string[] | undefined {
  const { zone, zones } = parameters;
  if (zone !== undefined && zones !== undefined) {
    throw new InTreeVolumeError("both zone and zones are given in the StorageClass: drop one");
  }
  const names = zone === undefined ? zones?.split(",").map((name) => name.trim()) : [zone.trim()];
  if (names?.includes("") === true) {
    throw new InTreeVolumeError(`zones "${zones ?? zone}" of the StorageClass: a zone has no name`);
  }
  return names;
}

/** One of the values, matched without regard to case. @throws InTreeVolumeError naming the parameter and all values */
export function oneOf<V extends string>(parameter: string, value: string, values: readonly V[]): V {
  const match = values.find((candidate) => candidate.toLowerCase() === value.toLowerCase());
  if (match !== undefined) return match;
  throw new InTreeVolumeError(
    `${parameter} "${value}" of the StorageClass is not supported: use one of ${values.join(", ")}`,
  );
}

/** Refuses a claim that asks for what no disk of the plugin has. @throws InTreeVolumeError */
export function checkClaim({ pvc }: VolumeOptions, label: string, accessModes: readonly string[]): void {
  const asked = pvc.spec?.accessModes ?? [];
  if (!asked.every((mode) => accessModes.includes(mode))) {
    throw new InTreeVolumeError(
      `invalid AccessModes ${asked.join(", ")} of the claim: ${label} supports ${accessModes.join(", ")}`,
    );
  }
  if (pvc.spec?.selector != null) {
    throw new InTreeVolumeError(
      `claim.Spec.Selector is not supported for dynamic provisioning on ${label}: remove it`,
    );
  }
}

/** A size in whole units, as a PersistentVolume's capacity says it, and in bytes. */
export interface RoundedSize {
  readonly quantity: string;
  readonly bytes: bigint;
}

/** The size in whole units, rounded up, at least one. */
export function roundedSize(bytes: bigint, unit: SizeUnit = "GiB"): RoundedSize {
  const size = unitBytes[unit];
  const count = (bytes + size - 1n) / size || 1n;
  return { quantity: `${count}${unit.slice(0, 2)}`, bytes: count * size };
}

/** The size that the claim requests, in whole units. */
export function requestedSize({ pvc }: VolumeOptions, unit?: SizeUnit): RoundedSize {
  return roundedSize(parseQuantity(pvc.spec?.resources?.requests?.storage ?? "0").toBytes(), unit);
}

/**
 * `<cluster>-dynamic-<PersistentVolume>`, at most so long; the cluster's name is cut first.
 * Source: upstream volume/util GenerateVolumeName.
 */
export function generatedVolumeName({ clusterName, pvName }: VolumeOptions, maximumLength = 255): string {
  const prefix = `${clusterName || "kubernetes"}-dynamic`;
  const room = maximumLength - pvName.length - 1;
  return room > 0 ? `${prefix.slice(0, room)}-${pvName}` : pvName.slice(0, maximumLength);
}

/** The file system of the class; a volume that is used as a device has none. */
export function classFsType({ pvc }: VolumeOptions, fsType: string | undefined): string | undefined {
  return pvc.spec?.volumeMode === "Block" ? undefined : fsType;
}

/** Refuses a claim that asks for a device. @throws InTreeVolumeError */
export function refuseBlock({ pvc }: VolumeOptions, pluginName: string): void {
  if (pvc.spec?.volumeMode !== "Block") return;
  throw new InTreeVolumeError(
    `${pluginName} does not support block volume provisioning: set volumeMode of the claim to Filesystem`,
  );
}

/** The parameter's value. @throws InTreeVolumeError when the class does not name one */
export function requiredParameter(pluginName: string, name: string, value: string | undefined): string {
  if (value !== undefined && value !== "") return value;
  throw new InTreeVolumeError(`${pluginName}: parameter ${name} of the StorageClass is missing: add it`);
}
