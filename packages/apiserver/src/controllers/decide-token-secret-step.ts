/**
 * What is done with a Secret that holds the token of a service account, and which account still needs one (kubernetes
 * pkg/controller/serviceaccount/tokens_controller.go). Pure.
 */
import { isDeleting, type Stored } from "@longshore/kube/basics";

/** Type of a Secret that holds the token of a service account. */
export const tokenSecretType = "kubernetes.io/service-account-token";
/** Annotation of such a Secret: the name of the account. */
export const accountNameAnnotation = "kubernetes.io/service-account.name";
/** Annotation of such a Secret: the UID of the account. */
export const accountUidAnnotation = "kubernetes.io/service-account.uid";

/** A Secret, with what is read of it here. */
export interface SecretLike extends Stored {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

/** A service account, with what is read of it here. */
export interface AccountLike extends Stored {
  readonly secrets?: readonly { readonly name?: string }[];
}

/** The next step for a Secret. */
export type TokenSecretStep =
  | { readonly step: "deleteSecret" }
  | { readonly step: "fillSecret"; readonly account: Stored }
  | { readonly step: "done" };

/** True for a Secret that holds, or is to hold, the token of a service account. */
export function isTokenSecret(secret: SecretLike | undefined): boolean {
  return secret?.type === tokenSecretType;
}

/** The name of the account of a token Secret; empty where it names none. */
export function accountNameOf({ metadata }: SecretLike): string {
  return metadata.annotations?.[accountNameAnnotation] ?? "";
}

/** Decides about a Secret. @param account the account that it names, if that exists */
export function decideTokenSecretStep(secret: SecretLike, account: Stored | undefined): TokenSecretStep {
  if (!isTokenSecret(secret) || isDeleting(secret)) return { step: "done" };
  const uid = secret.metadata.annotations?.[accountUidAnnotation];
  if (account === undefined) return { step: "deleteSecret" };
  // An account that was created again under its name is another one.
  if (uid !== undefined && uid !== account.metadata.uid) return { step: "deleteSecret" };
  const isFilled = uid !== undefined && (secret.data?.token ?? "") !== "";
  return isFilled ? { step: "done" } : { step: "fillSecret", account };
}

/** True when the account has no token Secret among those that it lists. @param listed the listed Secrets that exist */
export function needsTokenSecret(account: AccountLike, listed: readonly SecretLike[]): boolean {
  return !isDeleting(account) && !listed.some(isTokenSecret);
}
