/**
 * Secrets by RPC, in the form that csi-sanity reads them (docs/behaviour/csi-spec-notes.md 10), and their removal from texts.
 */
import { formsOfSecret, maskSecrets } from "@longshore/csi/transport";
import { foreignLines } from "@longshore/runtime";

/** Secrets by the name of the RPC that they are sent with, e.g. `CreateVolume`. */
export type DriverSecrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The RPCs with a field `secrets`. */
export const rpcsWithSecrets = [
  "CreateVolume",
  "DeleteVolume",
  "ControllerPublishVolume",
  "ControllerUnpublishVolume",
  "ValidateVolumeCapabilities",
  "ControllerExpandVolume",
  "ControllerModifyVolume",
  "CreateSnapshot",
  "DeleteSnapshot",
  "ListSnapshots",
  "GetSnapshot",
  "CreateVolumeGroupSnapshot",
  "DeleteVolumeGroupSnapshot",
  "GetVolumeGroupSnapshot",
  "GetMetadataAllocated",
  "GetMetadataDelta",
  "NodeStageVolume",
  "NodePublishVolume",
  "NodeExpandVolume",
] as const;

/** csi-sanity's name of a key, where it is not the RPC's name and `Secret`. */
const otherNames: Readonly<Record<string, string>> = {
  ControllerValidateVolumeCapabilitiesSecret: "ValidateVolumeCapabilities",
};

/** The secrets cannot be read; the message holds no value of them. */
export class SecretsError extends Error {
  override readonly name = "SecretsError";
}

/**
 * Reads a parsed secrets file: `CreateVolumeSecret: {key: value}` as csi-sanity has it, or the RPC's own name.
 * @throws SecretsError that names the key and never a value
 */
export function driverSecretsOf(document: unknown): DriverSecrets {
  if (document === null || document === undefined) return {};
  if (typeof document !== "object" || Array.isArray(document)) {
    throw new SecretsError("a mapping from RPC to secrets is needed, e.g. CreateVolumeSecret: {token: …}");
  }
  const secrets: Record<string, Record<string, string>> = {};
  for (const [key, values] of Object.entries(document)) {
    const rpc = otherNames[key] ?? key.replace(/Secret$/, "");
    if (!(rpcsWithSecrets as readonly string[]).includes(rpc)) {
      throw new SecretsError(
        `"${key}" is not a call with secrets: use one of ${rpcsWithSecrets.map((n) => `${n}Secret`).join(", ")}`,
      );
    }
    secrets[rpc] = secretValues(key, values);
  }
  return secrets;
}

function secretValues(key: string, values: unknown): Record<string, string> {
  if (values === null || values === undefined) return {};
  if (typeof values !== "object" || Array.isArray(values)) {
    throw new SecretsError(`${key} must be a mapping from names to strings`);
  }
  for (const [name, value] of Object.entries(values)) {
    if (typeof value !== "string") {
      throw new SecretsError(`${key}.${name} must be a string: put it in quotes`);
    }
  }
  return values as Record<string, string>;
}

/**
 * A function that takes every secret value out of a text, however short and also where it is encoded, and control
 * characters with it: what a driver says is shown on terminals. Lines stay.
 */
export function secretStripper(secrets: DriverSecrets): (text: string) => string {
  const forms = secretValuesOf(secrets).map((value) => formsOfSecret(value, 1));
  return (text) => foreignLines(maskSecrets(text, forms));
}

/** All values. */
export function secretValuesOf(secrets: DriverSecrets): readonly string[] {
  const values = new Set(Object.values(secrets).flatMap((byName) => Object.values(byName)));
  values.delete("");
  return [...values];
}
