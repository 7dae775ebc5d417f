/** The JSON options that a Flexvolume driver is given. Source: docs/behaviour/flexvolume.md 4.1. */
import { type KubeClient, type Pod, resources } from "@longshore/kube";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";

/** The spec is of no Flexvolume, or its Secret cannot be used. */
export class FlexVolumeError extends Error {
  override readonly name = "FlexVolumeError";
}

/** A Flexvolume, inline or of a PersistentVolume. */
export interface FlexVolumeSource {
  readonly driver: string;
  /** Empty where none is asked for. */
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly options: Readonly<Record<string, string>>;
  /** Name of the Secret; undefined: none. */
  readonly secretName: string | undefined;
  /** Namespace of the Secret of a PersistentVolume; an inline volume's is in the pod's. */
  readonly secretNamespace: string | undefined;
}

/** The volume's source; undefined when it is no Flexvolume. */
export function flexVolumeSourceOf({
  volume,
  persistentVolume,
  readOnly,
}: VolumeSpec): FlexVolumeSource | undefined {
  const source = volume?.flexVolume ?? persistentVolume?.spec?.flexVolume;
  if (source == null) return undefined;
  const ref: { readonly name?: string; readonly namespace?: string } | null | undefined = source.secretRef;
  return {
    driver: source.driver,
    fsType: source.fsType ?? "",
    readOnly: readOnly || source.readOnly === true,
    options: source.options ?? {},
    secretName: ref?.name,
    secretNamespace: ref?.namespace ?? persistentVolume?.spec?.claimRef?.namespace,
  };
}

/** Likewise. @throws FlexVolumeError */
export function requireFlexVolume(spec: VolumeSpec): FlexVolumeSource {
  const source = flexVolumeSourceOf(spec);
  if (source !== undefined) return source;
  throw new FlexVolumeError(`volume ${specName(spec)} has no flexVolume source`);
}

/** The argument of a call. The user's options replace equal keys. @param extra what only `mount` is given */
export function driverOptions(spec: VolumeSpec, extra: Readonly<Record<string, string>> = {}): string {
  const { fsType, readOnly, options } = requireFlexVolume(spec);
  return JSON.stringify({
    "kubernetes.io/fsType": fsType,
    "kubernetes.io/readwrite": readOnly ? "ro" : "rw",
    "kubernetes.io/pvOrVolumeName": specName(spec),
    ...extra,
    ...options,
  });
}

/** What `mount` is given of the pod, and the group of the volume's files. */
export function mountOptionsOf(pod: Pod, fsGroup: number | undefined): Readonly<Record<string, string>> {
  return {
    "kubernetes.io/pod.name": pod.metadata?.name ?? "",
    "kubernetes.io/pod.namespace": pod.metadata?.namespace ?? "",
    "kubernetes.io/pod.uid": pod.metadata?.uid ?? "",
    "kubernetes.io/serviceAccount.name": pod.spec?.serviceAccountName ?? "",
    ...(fsGroup === undefined ? {} : { "kubernetes.io/mounterArgs.FsGroup": String(fsGroup) }),
  };
}

/** The Secret's values, in base64, by their keys; none where the volume names no Secret. */
export async function readDriverSecret(
  kube: KubeClient,
  spec: VolumeSpec,
  pod: Pod,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const { driver, secretName: name, secretNamespace } = requireFlexVolume(spec);
  if (name === undefined || name === "") return {};
  const namespace =
    (spec.volume === undefined ? secretNamespace : undefined) ?? pod.metadata?.namespace ?? "";
  const secret = await kube.get(resources.secrets, { name, namespace }, { signal });
  const what = `Secret ${namespace}/${name} of Flexvolume ${specName(spec)}`;
  if (secret === undefined) throw new FlexVolumeError(`${what} does not exist: create it`);
  if (secret.type !== driver) {
    throw new FlexVolumeError(
      `${what} has not the type "${driver}": create it with the driver's name as its type`,
    );
  }
  return secret.data ?? {};
}

/** The Secret's values as options of the call. */
export function secretOptions(data: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [`kubernetes.io/secret/${key}`, value]),
  );
}

/** Every form in which the Secret's values might be repeated. */
export function secretTexts(data: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(data).flatMap((value) => [
    value,
    Buffer.from(value, "base64").toString("utf8").trim(),
  ]);
}
