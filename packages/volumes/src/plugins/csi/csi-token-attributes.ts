/** Tokens of the pod's service account for drivers that ask for them. Source: docs/behaviour/csi-plugin.md 9.5. */
import type { Pod, Stored } from "@longshore/kube";
import { type CsiDriverPolicy, type CsiNodeContext, CsiSpecError } from "./csi-node-context.ts";

const attribute = "csi.storage.k8s.io/serviceAccount.tokens";

/** The tokens, where the driver wants them: in the volume context, or among the secrets. */
export interface CsiTokens {
  readonly context: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** @throws CsiSpecError where this process requests no tokens; Error when there is none to be had now */
export async function csiTokens(
  { kubelet }: CsiNodeContext,
  { tokenRequests, hasTokensInSecrets }: Pick<CsiDriverPolicy, "tokenRequests" | "hasTokensInSecrets">,
  pod: Pod,
  signal: AbortSignal,
): Promise<CsiTokens> {
  if (tokenRequests.length === 0) return { context: {}, secrets: {} };
  const { tokens } = kubelet;
  if (tokens === undefined) throw new CsiSpecError("this process requests no tokens of service accounts");
  const byAudience: Record<string, object> = {};
  for (const demand of tokenRequests) {
    const given = await tokens.serviceAccountToken(pod as Stored<Pod>, demand, signal);
    const { token, expirationTimestamp } = given;
    byAudience[demand.audience ?? ""] = { token, expirationTimestamp };
  }
  const all = { [attribute]: JSON.stringify(byAudience) };
  return hasTokensInSecrets ? { context: {}, secrets: all } : { context: all, secrets: {} };
}
