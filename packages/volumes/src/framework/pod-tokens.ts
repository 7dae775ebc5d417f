/** Tokens of service accounts for volumes. Source: docs/behaviour/node-agent.md 12. */
import type { Pod, Stored } from "@longshore/kube";
import type { ServiceAccountToken, TokenDemand } from "./pod-sources.ts";

/** Where the node agent's plugins get tokens. */
export interface PodTokens {
  /**
   * A token of the account that the pod runs as, bound to the pod; the same one as long as it need not be renewed.
   *
   * @throws Error that names pod and account, never a token
   */
  serviceAccountToken(
    pod: Stored<Pod>,
    demand: TokenDemand,
    signal: AbortSignal,
  ): Promise<ServiceAccountToken>;
  /** Forgets the tokens of a pod; one that is needed nevertheless is requested again. */
  forgetPod(podUID: string): void;
}
