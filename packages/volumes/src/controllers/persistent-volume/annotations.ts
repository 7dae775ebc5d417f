/**
 * Annotations of claims and volumes, and the rule of the migration annotation. Pure. Source:
 * docs/behaviour/controllers.md B1, B2.
 */
import type { PersistentVolume, PersistentVolumeClaim } from "@longshore/kube";
import {
  betaStorageClassAnnotation,
  migratedToAnnotation,
  provisionedByAnnotation,
  storageProvisionerOf,
} from "@longshore/storage";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";

/** On a claim: binding is finished. */
export const bindCompletedAnnotation = "pv.kubernetes.io/bind-completed";
/** On either side: the controller, not the user, made the binding. */
export const boundByControllerAnnotation = "pv.kubernetes.io/bound-by-controller";

type Annotations = Readonly<Record<string, string>>;

/**
 * The annotations with `migrated-to` as the gates want it, or the same object when nothing changes.
 * @param provisioner value of the annotation that names the provisioner; undefined: statically provisioned
 */
export function withMigrationAnnotation(
  annotations: Annotations | undefined,
  provisioner: string | undefined,
  migration: Pick<MigratedPluginManager, "isMigrationEnabledForPlugin" | "csiNameOf">,
): Annotations | undefined {
  if (annotations === undefined || provisioner === undefined) return annotations;
  const current = annotations[migratedToAnnotation];
  if (migration.isMigrationEnabledForPlugin(provisioner)) {
    const driver = migration.csiNameOf(provisioner) ?? "";
    return current === driver ? annotations : { ...annotations, [migratedToAnnotation]: driver };
  }
  if (current === undefined) return annotations;
  // A rollback: with the mark left, in-tree code would never delete the volume (docs/behaviour/controllers.md B2, B5).
  const { [migratedToAnnotation]: _, ...rest } = annotations;
  return rest;
}

/** The claim with its migration annotation set right; the same object when it is. */
export function migratedClaim<C extends PersistentVolumeClaim>(
  claim: C,
  migration: Pick<MigratedPluginManager, "isMigrationEnabledForPlugin" | "csiNameOf">,
): C {
  const before = claim.metadata?.annotations;
  return withAnnotations(claim, withMigrationAnnotation(before, storageProvisionerOf(before), migration));
}

/** The volume with its migration annotation set right; the same object when it is. */
export function migratedVolume<V extends PersistentVolume>(
  volume: V,
  migration: Pick<MigratedPluginManager, "isMigrationEnabledForPlugin" | "csiNameOf">,
): V {
  const before = volume.metadata?.annotations;
  return withAnnotations(
    volume,
    withMigrationAnnotation(before, before?.[provisionedByAnnotation], migration),
  );
}

/** The object with these annotations; the same object when they are the same. */
export function withAnnotations<T extends { metadata?: { annotations?: Record<string, string> } }>(
  object: T,
  annotations: Annotations | undefined,
): T {
  if (annotations === undefined || annotations === object.metadata?.annotations) return object;
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** The object with one annotation set, or without it. */
export function withAnnotation<T extends { metadata?: { annotations?: Record<string, string> } }>(
  object: T,
  key: string,
  value: string | undefined,
): T {
  const { [key]: before, ...rest } = object.metadata?.annotations ?? {};
  if (before === value) return object;
  return withAnnotations(object, value === undefined ? rest : { ...rest, [key]: value });
}

/** The name of the claim's class; empty when it has none. */
export function classOfClaim(claim: PersistentVolumeClaim): string {
  return claim.metadata?.annotations?.[betaStorageClassAnnotation] ?? claim.spec?.storageClassName ?? "";
}

/** The name of the volume's class; empty when it has none. */
export function classOfVolume(volume: PersistentVolume): string {
  return volume.metadata?.annotations?.[betaStorageClassAnnotation] ?? volume.spec?.storageClassName ?? "";
}
