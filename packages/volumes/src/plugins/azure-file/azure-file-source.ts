/** Shares of Azure Files as volumes name them: share, secret with the account, and the account's resource group. */
import type { Pod } from "@longshore/kube";
import type { CloudCredentials } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { readSecret, type SecretPlace, secretPlaceOf, secretValue } from "../disk/secrets.ts";
import { inTreeSourceOf } from "../disk/volume-source.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";

/** The plugin's name. */
export const azureFilePluginName = "kubernetes.io/azure-file";

/** Of a PersistentVolume: the resource group of the account; the provider's own without it. */
export const resourceGroupAnnotation = "kubernetes.io/azure-file-resource-group";

/** The secret's keys. Source: upstream volume/azure_file/azure_util.go. */
export const accountNameKey = "azurestorageaccountname";
/** As {@link accountNameKey}. */
export const accountKeyKey = "azurestorageaccountkey";

/** A share and what opens it. */
export interface AzureShare {
  readonly volumeName: string;
  /** The provider's id: `<resource group>#<account>#<share>`. */
  readonly shareId: string;
  readonly credentials: CloudCredentials;
}

/** The share's name, which is the plugin's own name of the volume. @throws InTreeVolumeError */
export function shareNameOf(spec: VolumeSpec): string {
  const { shareName } = inTreeSourceOf(spec, "azureFile").source;
  // Source: Azure, naming of shares: 3 to 63 lower-case letters, digits and -; no two - after each other.
  if (/^[a-z0-9](-?[a-z0-9]){2,62}$/.test(shareName)) return shareName;
  throw new InTreeVolumeError(
    `shareName "${shareName}": expected 3 to 63 lower-case letters, digits and single -`,
  );
}

/** The share of a volume, as its secret opens it. @throws InTreeVolumeError */
export async function shareOf(
  host: VolumeHost,
  spec: VolumeSpec,
  pod: Pod | undefined,
  signal: AbortSignal,
): Promise<AzureShare> {
  const volumeName = shareNameOf(spec);
  const place = secretOf(spec, pod);
  const values = await readSecret(host, place, undefined, signal);
  const user = secretValue(values, place, accountNameKey);
  const key = secretValue(values, place, accountKeyKey);
  const group = spec.persistentVolume?.metadata?.annotations?.[resourceGroupAnnotation] ?? "";
  return { volumeName, shareId: `${group}#${user}#${volumeName}`, credentials: { user, key } };
}

function secretOf(spec: VolumeSpec, pod: Pod | undefined): SecretPlace {
  const { secretName } = inTreeSourceOf(spec, "azureFile").source;
  return secretPlaceOf(spec, secretName, spec.persistentVolume?.spec?.azureFile?.secretNamespace, pod);
}
