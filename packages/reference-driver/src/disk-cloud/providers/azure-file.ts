/** Azure Files: shares of an account, whose key opens them; any number of instances may have one. */
import { type Provider, plainName } from "./provider.ts";

/** Resource group and account of shares for which none is asked (tags `resourcegroup`, `storageaccount`). */
const standard = "longshore";

/** `kubernetes.io/azure-file`, `file.csi.azure.com`. */
export const azureFile: Provider = {
  name: "azure-file",
  idOf({ name, tags }) {
    const group = plainName("tag resourcegroup", tags.resourcegroup || standard);
    const account = plainName("tag storageaccount", tags.storageaccount || standard);
    return `${group}#${account}#${plainName("the name of a share", name)}`;
  },
  isNumbered: false,
  // A handle that was translated may lack the resource group; accounts have names of their own without it.
  canonicalId: (id) => id.split("#").slice(1, 3).join("#").toLowerCase(),
  places: "anywhere",
  attachLimit: undefined,
  attaches: "share",
  asksFor: "account",
  codes: {
    NotFound: "ShareNotFound",
    AlreadyExists: "ShareAlreadyExists",
    InvalidArgument: "InvalidResourceName",
    Throttled: "TooManyRequests",
    Unauthenticated: "AuthenticationFailed",
    Unavailable: "ServerBusy",
  },
};

/** The account of a share with this id. */
export function accountOf(shareId: string): string {
  return shareId.split("#")[1] ?? "";
}
