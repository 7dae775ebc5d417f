/** The keys that accounts of shares and users of images have. No text of an error has one in it. */
import type { Random } from "@longshore/runtime";
import { type CloudCredentials, CloudError } from "@longshore/volumes";
import type { CloudState } from "./cloud-state.ts";
import { accountOf, type Provider } from "./providers/index.ts";

/** Users of the Ceph cluster with their keys, where the options name no others. They guard nothing but volumes of tests. */
export const defaultCephUsers: Readonly<Record<string, string>> = {
  admin: "AQBsb25nc2hvcmUtYWRtaW4ta2V5LWZvci10ZXN0cw==",
  kube: "AQBsb25nc2hvcmUta3ViZS1rZXktZm9yLXRlc3RzLi4=",
};

/** The tags by which the creator of a share learns its account: the fields of the Secret that a node reads. */
export const accountTags = { name: "azurestorageaccountname", key: "azurestorageaccountkey" } as const;

/**
 * Whether these credentials open the disk, where its provider asks for any.
 * @param diskId as the provider calls it
 * @throws CloudError Unauthenticated
 */
export function checkCredentials(
  state: CloudState,
  provider: Provider,
  diskId: string,
  given: CloudCredentials | undefined,
  cephUsers: Readonly<Record<string, string>>,
): void {
  if (provider.asksFor === undefined) return;
  const isUser = provider.asksFor === "user";
  const what = isUser ? "user" : "storage account";
  if (given === undefined) {
    throw new CloudError(
      "Unauthenticated",
      `${diskId} asks for a ${what} and its key: name the secret with them`,
    );
  }
  const keys = isUser ? new Map(Object.entries(cephUsers)) : new Map(accountKeys(state));
  const isTheirs = isUser || given.user === accountOf(diskId);
  if (isTheirs && keys.get(given.user) === given.key) return;
  throw new CloudError(
    "Unauthenticated",
    `${what} ${given.user} does not open ${diskId}: correct the secret with its name and key`,
  );
}

function accountKeys({ accounts = {} }: CloudState): readonly (readonly [string, string])[] {
  return Object.entries(accounts).map(([name, { key }]) => [name, key]);
}

/** Account and key of a share. @throws CloudError NotFound */
export function accountCredentials(state: CloudState, shareId: string): CloudCredentials {
  const user = accountOf(shareId);
  const account = Object.hasOwn(state.accounts ?? {}, user) ? state.accounts?.[user] : undefined;
  if (account === undefined) throw new CloudError("NotFound", `there is no storage account ${user}`);
  return { user, key: account.key };
}

/** The state with the account; the same object when it has it. A key has 64 bytes, in base64. */
export function withAccount(state: CloudState, name: string, random: Random): CloudState {
  if (Object.hasOwn(state.accounts ?? {}, name)) return state;
  const parts = [1, 2, 3, 4].map((part) => random.uuid(`part ${part} of the key of account ${name}`));
  const key = Buffer.from(parts.join("").replaceAll("-", ""), "ascii").subarray(0, 64).toString("base64");
  return { ...state, accounts: { ...state.accounts, [name]: { key } } };
}
