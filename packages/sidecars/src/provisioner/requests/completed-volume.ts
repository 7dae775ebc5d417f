/** The object of a volume that the driver has made, completed with what ties it to its claim. Pure. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { migratedToAnnotation, provisionedByAnnotation, provisionerFinalizer } from "@longshore/storage";
import type { Driver } from "../../common/sidecar-env.ts";
import type { PreparedVolume } from "./volume-request.ts";

/** What the completion depends on besides the volume. */
export interface CompletionContext {
  readonly driver: Pick<Driver, "name">;
  /** New volumes get {@link provisionerFinalizer}. */
  readonly protectVolumes: boolean;
}

/** The volume with its class, its provisioner, its finalizer and the claim that it is made for. */
export function completedVolume(
  { driver, protectVolumes }: CompletionContext,
  pv: PersistentVolume,
  claim: Stored<PersistentVolumeClaim>,
  prepared: PreparedVolume,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const isProtected = protectVolumes && pv.spec?.persistentVolumeReclaimPolicy !== "Retain";
  return {
    ...pv,
    metadata: {
      ...pv.metadata,
      annotations: {
        ...pv.metadata?.annotations,
        [provisionedByAnnotation]: prepared.provisioner,
        // Else the volume would look abandoned by its driver until the persistent-volume controller has seen it.
        ...(prepared.migrated ? { [migratedToAnnotation]: driver.name } : {}),
      },
      ...(isProtected ? { finalizers: [provisionerFinalizer] } : {}),
    },
    spec: {
      ...pv.spec,
      storageClassName: prepared.storageClass.metadata?.name ?? "",
      claimRef: {
        kind: "PersistentVolumeClaim",
        apiVersion: "v1",
        name,
        namespace: namespace ?? "",
        uid,
        resourceVersion,
      },
    },
  };
}
