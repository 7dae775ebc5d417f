/** Tokens of service accounts for volumes. Source: docs/behaviour/node-agent.md 12. */
import type { Pod, Stored } from "@longshore/kube";

/** A token as a driver gets it. */
export interface PodToken {
  /** Secret. */
  readonly token: string;
  /** When it expires (RFC 3339). */
  readonly expirationTimestamp: string;
}

/** Where the node agent's plugins get tokens. */
export interface PodTokens {
  /**
   * A token of the account that the pod runs as, bound to the pod; the same one as long as it need not be renewed.
   *
   * @param demand by which service it is accepted (left out: the API server), and its life in seconds
   * @throws Error that names pod and account, never a token
   */
  serviceAccountToken(
    pod: Stored<Pod>,
    demand: { readonly audience?: string; readonly expirationSeconds?: number },
    signal: AbortSignal,
  ): Promise<PodToken>;
  /** Forgets the tokens of a pod; one that is needed nevertheless is requested again. */
  forgetPod(podUID: string): void;
}
