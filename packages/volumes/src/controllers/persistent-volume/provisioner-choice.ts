/** Who makes the volumes of a class. Pure. Source: docs/behaviour/controllers.md B6. */
import type { PersistentVolumeClaim, StorageClass } from "@longshore/kube";
import {
  betaStorageProvisionerAnnotation,
  storageProvisionerAnnotation,
  storageProvisionerOf,
} from "@longshore/storage";
import type { MigratedPluginManager } from "../../csimigration/migrated-plugin-manager.ts";
import { isProvisionable, type ProvisionableVolumePlugin } from "../../framework/volume-plugin.ts";
import type { VolumePluginManager } from "../../framework/volume-plugin-manager.ts";
import { migratedClaim, withAnnotation } from "./annotations.ts";

/** Who makes volumes of a class. */
export type ProvisionerChoice =
  | { readonly kind: "external"; readonly provisioner: string }
  | { readonly kind: "in-tree"; readonly plugin: ProvisionableVolumePlugin }
  /** Nothing can: why. */
  | { readonly kind: "none"; readonly message: string };

/** The plugins and gates that decide. */
export interface Provisioners {
  readonly plugins: VolumePluginManager;
  readonly migration: MigratedPluginManager;
}

/** Chooses by the name of the class's provisioner. */
export function chooseProvisioner(
  { plugins, migration }: Provisioners,
  { provisioner }: StorageClass,
): ProvisionerChoice {
  // Asked before any plugin is looked up: once migration is complete, the plugin is not there any more.
  if (migration.isMigrationEnabledForPlugin(provisioner)) {
    return { kind: "external", provisioner: migration.csiNameOf(provisioner) ?? provisioner };
  }
  const plugin = plugins.plugins.find(({ pluginName }) => pluginName === provisioner);
  if (plugin !== undefined && isProvisionable(plugin)) return { kind: "in-tree", plugin };
  if (!provisioner.startsWith("kubernetes.io/")) return { kind: "external", provisioner };
  const message =
    plugin === undefined
      ? `no volume plugin matched name: ${provisioner}`
      : "no provisionable volume plugin matched";
  return { kind: "none", message };
}

/**
 * The in-tree plugin that a claim has been given to; undefined: none, or an external provisioner has taken over, and
 * the finalizer of the claim is that provisioner's.
 */
export function inTreeProvisionerOf(
  { plugins, migration }: Provisioners,
  claim: PersistentVolumeClaim,
): ProvisionableVolumePlugin | undefined {
  const provisioner = storageProvisionerOf(claim.metadata?.annotations);
  if (provisioner === undefined || migration.isMigrationEnabledForPlugin(provisioner)) return undefined;
  const plugin = plugins.plugins.find(({ pluginName }) => pluginName === provisioner);
  return plugin !== undefined && isProvisionable(plugin) ? plugin : undefined;
}

/**
 * The claim given to a provisioner; its migration annotation follows the new name at once.
 * @param compat only the annotation that Kubernetes 1.20 knows is added
 */
export function claimGivenTo<C extends PersistentVolumeClaim>(
  claim: C,
  provisioner: string,
  migration: MigratedPluginManager,
  compat: boolean,
): C {
  const { annotations } = claim.metadata ?? {};
  if (storageProvisionerOf(annotations) === provisioner) return claim;
  const given = withAnnotation(claim, betaStorageProvisionerAnnotation, provisioner);
  // One that another controller has written counts before the beta one, so it has to follow.
  const isBetaOnly = compat && annotations?.[storageProvisionerAnnotation] === undefined;
  return migratedClaim(
    isBetaOnly ? given : withAnnotation(given, storageProvisionerAnnotation, provisioner),
    migration,
  );
}
