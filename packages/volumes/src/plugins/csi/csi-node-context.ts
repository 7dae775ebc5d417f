/** What the node's half of the CSI plugin works with, and how it reads a driver's CSIDriver object. */
import type { CsiConnector } from "@longshore/csi";
import type { CSIPersistentVolumeSource, PersistentVolume } from "@longshore/kube";
import { TransientOperationError } from "../../framework/node-error-kind.ts";
import type { KubeletVolumeHost, VolumeHost } from "../../framework/volume-host.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { csiSourceOf } from "./csi-names.ts";
import type { RegisteredCsiDrivers } from "./registered-csi-drivers.ts";

/** One deadline for each plugin method, shared by all calls that it makes. Source: docs/behaviour/csi-plugin.md 1. */
export const csiTimeoutMs = 120_000;

/** Shared by mounters and device mounters. */
export interface CsiNodeContext {
  readonly volumeHost: VolumeHost;
  readonly kubelet: KubeletVolumeHost;
  readonly connector: CsiConnector;
  readonly drivers: RegisteredCsiDrivers;
}

/** The volume cannot be handled as it is described; names object and field. */
export class CsiSpecError extends Error {
  override readonly name = "CsiSpecError";
}

/** A spec's PersistentVolume and its CSI source. @throws CsiVolumeError when there is none */
export function csiVolumeOf(spec: VolumeSpec): {
  readonly pv: PersistentVolume;
  readonly source: CSIPersistentVolumeSource;
} {
  return { source: csiSourceOf(spec), pv: spec.persistentVolume ?? {} };
}

/** How a driver wants to be handled, with the API's defaults where nothing is said. */
export interface CsiDriverPolicy {
  readonly attachRequired: boolean;
  readonly podInfoOnMount: boolean;
  readonly volumeLifecycleModes: readonly string[];
  readonly fsGroupPolicy: string;
  /** The driver mounts with `-o context`. */
  readonly seLinuxMount: boolean;
  /** Tokens that it gets with NodePublishVolume. */
  readonly tokenRequests: readonly { readonly audience?: string; readonly expirationSeconds?: number }[];
  /** They are among the secrets of the call, not in the volume context. */
  readonly hasTokensInSecrets: boolean;
  /** A mounted volume is published again and again, so that the driver can renew what is in it. */
  readonly requiresRepublish: boolean;
}

/** What releases after those of kubernetes-types have in `spec`. */
interface LaterFields {
  readonly serviceAccountTokenInSecrets?: boolean;
}

/** The policy of a driver from its CSIDriver object. Source: docs/behaviour/csi-plugin.md 3. */
export async function csiDriverPolicy(
  context: CsiNodeContext,
  driverName: string,
  signal: AbortSignal,
): Promise<CsiDriverPolicy> {
  const driver = await context.volumeHost.csiDriver(driverName, signal);
  const later = driver?.spec as LaterFields | undefined;
  const modes = driver?.spec.volumeLifecycleModes ?? [];
  const fsGroupPolicy = driver?.spec.fsGroupPolicy ?? "";
  return {
    attachRequired: driver?.spec.attachRequired ?? true,
    podInfoOnMount: driver?.spec.podInfoOnMount ?? false,
    volumeLifecycleModes: modes.length === 0 ? ["Persistent"] : modes,
    fsGroupPolicy: fsGroupPolicy === "" ? "ReadWriteOnceWithFSType" : fsGroupPolicy,
    seLinuxMount: driver?.spec.seLinuxMount ?? false,
    tokenRequests: driver?.spec.tokenRequests ?? [],
    hasTokensInSecrets: later?.serviceAccountTokenInSecrets ?? false,
    requiresRepublish: driver?.spec.requiresRepublish ?? false,
  };
}

/** Runs `work`; any failure is one that passes. */
export async function orTransient<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new TransientOperationError(what, { cause });
  }
}
