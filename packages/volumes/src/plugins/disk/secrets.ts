/** Secrets that in-tree volumes name. Their values enter no error. */
import { type Pod, resources } from "@longshore/kube";
import type { VolumeHost } from "../../framework/volume-host.ts";
import { specName, type VolumeSpec } from "../../framework/volume-spec.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

/** A secret by its place. */
export interface SecretPlace {
  readonly namespace: string;
  readonly name: string;
}

/** The values of a secret, by key. @throws InTreeVolumeError when it is missing or of another type */
export async function readSecret(
  { kube }: VolumeHost,
  { namespace, name }: SecretPlace,
  type: string | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const secret = await kube.get(resources.secrets, { namespace, name }, { signal });
  if (secret === undefined) {
    throw new InTreeVolumeError(`Secret ${namespace}/${name} does not exist: create it`);
  }
  if (type !== undefined && secret.type !== type) {
    throw new InTreeVolumeError(
      `Secret ${namespace}/${name}: type is "${secret.type ?? ""}": create it with type ${type}`,
    );
  }
  const entries = Object.entries(secret.data ?? {});
  return Object.fromEntries(
    entries.map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8").trim()]),
  );
}

/** One value of a secret. @throws InTreeVolumeError when it is missing or empty */
export function secretValue(
  values: Readonly<Record<string, string>>,
  { namespace, name }: SecretPlace,
  key: string,
): string {
  const value = Object.hasOwn(values, key) ? values[key] : undefined;
  if (value !== undefined && value !== "") return value;
  throw new InTreeVolumeError(`Secret ${namespace}/${name}: data.${key} is missing: add it`);
}

/**
 * Where a volume's secret is: in the namespace that its PersistentVolume names, else in that of the pod or of the claim. An
 * inline volume names none: its pod's author must not read the secrets of others.
 *
 * @throws InTreeVolumeError when nothing says the namespace
 */
export function secretPlaceOf(
  spec: VolumeSpec,
  name: string,
  persistentNamespace: string | null | undefined,
  pod: Pod | undefined,
): SecretPlace {
  const claimNamespace = spec.persistentVolume?.spec?.claimRef?.namespace;
  const namespace = persistentNamespace || pod?.metadata?.namespace || claimNamespace;
  if (namespace !== undefined) return { namespace, name };
  throw new InTreeVolumeError(
    `volume "${specName(spec)}": nothing says which namespace Secret ${name} is in: name it in the PersistentVolume`,
  );
}
