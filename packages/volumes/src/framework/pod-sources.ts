/**
 * What the volumes of a pod are made from besides disks: ConfigMaps, Secrets and tokens of its service account. A volume that
 * has read one is set up again when that changes. Source: docs/behaviour/pod-volumes.md 5.
 */
import type { ConfigMap, Pod, Secret, Stored } from "@longshore/kube";

/** Which volume reads. */
export interface SourceReader {
  readonly pod: Stored<Pod>;
  /** The unique name of the volume (docs/behaviour/volume-plugins.md 5). */
  readonly uniqueName: string;
}

/** What a token is for. */
export interface TokenDemand {
  /** By which service it is accepted; left out or empty: by the API server. */
  readonly audience?: string;
  /** Requested life in seconds, at least 600; the server may choose another. Default 3600. */
  readonly expirationSeconds?: number;
}

/** A token as its pod may use it. */
export interface ServiceAccountToken {
  /** Secret. */
  readonly token: string;
  /** When it expires, as the API server writes times (RFC 3339). */
  readonly expirationTimestamp: string;
}

/** Reads for volumes, and notes who has read what. */
export interface PodSources {
  /**
   * The ConfigMap of that name in the pod's namespace, or undefined: there is none.
   * @throws TransientOperationError when it cannot be read now
   */
  configMap(reader: SourceReader, name: string, signal: AbortSignal): Promise<Stored<ConfigMap> | undefined>;
  /** The Secret of that name in the pod's namespace; as {@link configMap}. */
  secret(reader: SourceReader, name: string, signal: AbortSignal): Promise<Stored<Secret> | undefined>;
  /** A token of the account that the pod runs as; the volume is set up again when there is a newer one. @throws ServiceAccountTokenError */
  serviceAccountToken(
    reader: SourceReader,
    demand: TokenDemand,
    signal: AbortSignal,
  ): Promise<ServiceAccountToken>;
}
