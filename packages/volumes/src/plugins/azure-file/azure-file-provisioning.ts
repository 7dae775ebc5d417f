/** How shares are made: the share, then the secret that opens its account, then the PersistentVolume that names both. */
import { KubeApiError, resources } from "@longshore/kube";
import type { Disk } from "../../framework/ports.ts";
import type { VolumeHost } from "../../framework/volume-host.ts";
import {
  checkClaim,
  classParameters,
  generatedVolumeName,
  oneOf,
  refuseBlock,
} from "../disk/class-parameters.ts";
import type { DiskProvisioning } from "../disk/disk-description.ts";
import { InTreeVolumeError } from "../in-tree-volume-error.ts";
import {
  accountKeyKey,
  accountNameKey,
  azureFilePluginName,
  resourceGroupAnnotation,
} from "./azure-file-source.ts";

const accessModes = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"];
const skus = [
  ...(["Standard_LRS", "Standard_GRS", "Standard_ZRS", "Standard_RAGRS"] as const),
  ...(["Premium_LRS", "Premium_ZRS"] as const),
];
const known = [
  ...(["skuname", "location", "storageaccount", "resourcegroup"] as const),
  ...(["secretnamespace", "sharename"] as const),
];

/** Longest name of a share. */
const maximumNameLength = 63;

/** The tag with the account's key, in the provider's answer to the creator of a share. */
const keyTag = accountKeyKey;

/** The provisioning of shares. */
export const azureFileProvisioning: DiskProvisioning = {
  createdBy: "azure-file-dynamic-provisioner",
  plan(options, host) {
    checkClaim(options, "Azure File", accessModes);
    refuseBlock(options, azureFilePluginName);
    const parameters = classParameters(azureFilePluginName, options.parameters, known);
    const { skuname, secretnamespace, sharename, location, storageaccount, resourcegroup } = parameters;
    const secretNamespace = secretnamespace ?? options.pvc.metadata?.namespace ?? "default";
    return {
      name: sharename ?? generatedVolumeName(options, maximumNameLength).replaceAll("--", "-"),
      type: oneOf("skuName", skuname ?? "Standard_LRS", skus),
      tags: {
        ...(location !== undefined && { location }),
        ...(storageaccount !== undefined && { storageaccount }),
        ...(resourcegroup !== undefined && { resourcegroup }),
      },
      zoneCount: 0,
      accessModes,
      annotationsOf: (share) => ({ [resourceGroupAnnotation]: partsOf(share).group }),
      async sourceOf(share, signal) {
        const { account, name } = partsOf(share);
        const secretName = await ensureSecret(host, secretNamespace, account, share, signal);
        return { azureFile: { shareName: name, secretName, secretNamespace } };
      },
    };
  },
};

function partsOf({ id }: Disk) {
  const [group = "", account = "", name] = id.split("#");
  if (name !== undefined) return { group, account, name };
  throw new InTreeVolumeError(`share "${id}" of the provider: expected <resource group>#<account>#<share>`);
}

/** Keeps the account's key where nodes read it. One that is there is left: several volumes have one account. */
async function ensureSecret(
  { kube }: VolumeHost,
  namespace: string,
  account: string,
  { tags }: Disk,
  signal: AbortSignal,
): Promise<string> {
  const name = `azure-storage-account-${account}-secret`;
  if ((await kube.get(resources.secrets, { namespace, name }, { signal })) !== undefined) return name;
  const key = tags[keyTag];
  if (key === undefined) {
    throw new InTreeVolumeError(
      `Secret ${namespace}/${name} does not exist and the provider returned no key of account ${account}: create the secret`,
    );
  }
  const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");
  const data = { [accountNameKey]: base64(account), [accountKeyKey]: base64(key) };
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name },
    type: "Opaque",
    data,
  } as const;
  try {
    await kube.create(resources.secrets, secret, { signal });
  } catch (error) {
    // Another volume of the account came first.
    if (!(error instanceof KubeApiError && error.reason === "AlreadyExists")) throw error;
  }
  return name;
}
