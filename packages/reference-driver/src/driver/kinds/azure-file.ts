/** `file.csi.azure.com`. */
import { driverKindOf, manyUsers, renamed, shortNames } from "./driver-kind.ts";

/** Resource group (may be missing), account, share, and what does not matter. */
const handle = /^[^#/]*(#[^#/]+){2}(#[^#/]*)*$/;

/** Azure Files. */
export const azureFile = driverKindOf("azure-file", {
  volumeIdBytesMax: 1024,
  usesDiskIds: false,
  volumeIdOf: ({ id }) => `${id}#`,
  // Later fields (name of a disk, namespace of the secret) do not distinguish one share from another.
  diskIdsOf: (volumeId) => (handle.test(volumeId) ? [volumeId.split("#").slice(0, 3).join("#")] : []),
  // A handle that was translated may lack the resource group.
  isMeant(volumeId, { id }) {
    const [group] = volumeId.split("#");
    return group === "" || group?.toLowerCase() === id.split("#")[0]?.toLowerCase();
  },
  diskNameOf: shortNames(63),
  attachesOn: "node",
  isShare: true,
  sharedModes: manyUsers,
  parameters: [
    ...["skuname", "storageaccounttype", "storageaccount", "location", "resourcegroup", "secretname"],
    ...["secretnamespace", "protocol", "tags", "storeaccountkey", "fstype"],
  ],
  type: { parameter: "skuname", standard: "Standard_LRS" },
  tagsOf: (parameters) =>
    renamed(parameters, { resourcegroup: "resourcegroup", storageaccount: "storageaccount" }),
  volumeContextOf: ({ name }) => ({ sharename: name }),
  // Without a secret the node asks the provider, with rights of its own.
  credentialsOf({ azurestorageaccountname: user, azurestorageaccountkey: key }) {
    return user === undefined || key === undefined ? undefined : { user, key };
  },
});
