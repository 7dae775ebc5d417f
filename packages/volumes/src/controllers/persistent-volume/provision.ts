/**
 * Making a volume for a claim: hand-over to an external provisioner, or the in-tree plugin.
 * Source: docs/behaviour/controllers.md B6; docs/contract.md C3.
 *
 * Invariants of in-tree provisioning
 *  - The finalizer `longshore.dev/provisioning` is stored on the claim before the plugin is called, and
 *    taken off once the volume is stored, or certainly gone: no disk is ever lost to a crash.
 *  - Names are deterministic (`pvc-<uid>`), so calling again finds what an earlier call made, and an
 *    external provisioner that takes over finds it too.
 */
import {
  isAlreadyExists,
  isDeleting,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  resources,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { DeadlineError, errorChain } from "@longshore/runtime";
import {
  betaStorageProvisionerAnnotation,
  provisionedByAnnotation,
  provisioningFinalizer,
  selectedNodeAnnotation,
  storageProvisionerOf,
} from "@longshore/storage";
import { isProvisionable, type ProvisionableVolumePlugin } from "../../framework/plugin.ts";
import { CloudError } from "../../framework/ports.ts";
import { specOfPersistentVolume } from "../../framework/spec.ts";
import { boundByControllerAnnotation, classOfClaim, migratedClaim, withAnnotation } from "./annotations.ts";
import { type PersistentVolumeContext, save } from "./context.ts";
import { tell } from "./events.ts";

/** Attempts to store a volume that was made, and the pause between them in milliseconds. */
const storeAttempts = 5;
const storePauseMs = 10_000;

/** Who makes volumes of a class. */
type ProvisionerChoice =
  | { readonly kind: "external"; readonly provisioner: string }
  | { readonly kind: "in-tree"; readonly plugin: ProvisionableVolumePlugin }
  | { readonly kind: "none"; readonly message: string };

/** The name of the volume made for a claim. */
export function provisionedName(claim: Stored<PersistentVolumeClaim>): string {
  return `pvc-${claim.metadata.uid}`;
}

/** Has a volume made for the claim. */
export async function provisionClaim(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  className: string,
  signal: AbortSignal,
): Promise<void> {
  const storageClass = context.classes.get(className);
  if (storageClass === undefined) {
    tell(
      context,
      claim,
      "Warning",
      "ProvisioningFailed",
      `storageclass.storage.k8s.io "${className}" not found`,
    );
    return;
  }
  const choice = chooseProvisioner(context, storageClass);
  switch (choice.kind) {
    case "none":
      tell(context, claim, "Warning", "ProvisioningFailed", choice.message);
      return;
    case "external":
      await handOver(context, claim, choice.provisioner, signal);
      return;
    case "in-tree":
      startProvisioning(context, claim, storageClass, choice.plugin);
  }
}

function chooseProvisioner(context: PersistentVolumeContext, storageClass: StorageClass): ProvisionerChoice {
  const { provisioner } = storageClass;
  // Asked before any plugin is looked up: once migration is complete, the plugin is not there any more.
  if (context.migration.isMigrationEnabledForPlugin(provisioner)) {
    return { kind: "external", provisioner: context.migration.csiNameOf(provisioner) ?? provisioner };
  }
  const plugin = context.plugins.plugins.find(({ pluginName }) => pluginName === provisioner);
  if (plugin !== undefined && isProvisionable(plugin)) return { kind: "in-tree", plugin };
  if (!provisioner.startsWith("kubernetes.io/")) return { kind: "external", provisioner };
  const message =
    plugin === undefined
      ? `no volume plugin matched name: ${provisioner}`
      : "no provisionable volume plugin matched";
  return { kind: "none", message };
}

async function handOver(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  provisioner: string,
  signal: AbortSignal,
): Promise<void> {
  await save(
    context,
    resources.persistentVolumeClaims,
    claim,
    withProvisioner(context, claim, provisioner),
    signal,
  );
  const message = `waiting for a volume to be created, either by external provisioner "${provisioner}" or manually created by system administrator`;
  tell(context, claim, "Normal", "ExternalProvisioning", message);
}

/** The claim handed to a provisioner; its migration annotation follows the new name at once. */
function withProvisioner(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  provisioner: string,
): Stored<PersistentVolumeClaim> {
  if (storageProvisionerOf(claim.metadata.annotations) === provisioner) return claim;
  return migratedClaim(
    withAnnotation(claim, betaStorageProvisionerAnnotation, provisioner),
    context.migration,
  );
}

function startProvisioning(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: Stored<StorageClass>,
  plugin: ProvisionableVolumePlugin,
): void {
  const key = { volumeName: operationName(claim) };
  context.executor.startOperation(key, key.volumeName, (signal) =>
    provision(context, claim, storageClass, plugin, signal),
  );
}

function operationName(claim: Stored<PersistentVolumeClaim>): string {
  return `provision-${keyOf(claim)}[${claim.metadata.uid}]`;
}

async function provision(
  context: PersistentVolumeContext,
  seen: Stored<PersistentVolumeClaim>,
  storageClass: Stored<StorageClass>,
  plugin: ProvisionableVolumePlugin,
  signal: AbortSignal,
): Promise<void> {
  const { kube } = context.env;
  const ref = { namespace: seen.metadata.namespace ?? "", name: seen.metadata.name };
  const live = await kube.get(resources.persistentVolumeClaims, ref, { signal });
  if (live === undefined || live.metadata.uid !== seen.metadata.uid) return;
  if ((live.spec?.volumeName ?? "") !== "" || isDeleting(live)) return;
  const name = provisionedName(live);
  if ((await kube.get(resources.persistentVolumes, { name }, { signal })) !== undefined) return;
  const annotated = withProvisioner(context, live, storageClass.provisioner);
  const intent = context.compat ? annotated : withFinalizer(annotated);
  const claim = await save(context, resources.persistentVolumeClaims, live, intent, signal);
  let volume: PersistentVolume;
  try {
    const selected = claim.metadata.annotations?.[selectedNodeAnnotation];
    volume = await callPlugin(context, claim, storageClass, plugin, selected, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `Failed to provision volume with StorageClass "${storageClass.metadata.name}": ${errorChain(error)}`;
    tell(context, claim, "Warning", "ProvisioningFailed", message);
    if (!isUncertain(error)) await unselectNode(context, claim, signal);
    throw error;
  }
  await store(context, claim, volume, plugin, signal);
  tell(
    context,
    claim,
    "Normal",
    "ProvisioningSucceeded",
    `Successfully provisioned volume ${volume.metadata?.name} using ${plugin.pluginName}`,
  );
}

async function callPlugin(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  plugin: ProvisionableVolumePlugin,
  selectedNodeName: string | undefined,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const mountOptions = storageClass.mountOptions ?? [];
  if (mountOptions.length > 0 && !plugin.supportsMountOption()) {
    throw new Error(`Mount options are not supported by the provisioner but StorageClass has mount options`);
  }
  const node =
    selectedNodeName === undefined
      ? undefined
      : await context.env.kube.get(resources.nodes, { name: selectedNodeName }, { signal });
  if (selectedNodeName !== undefined && node === undefined) {
    throw new Error(`failed to get target node: node "${selectedNodeName}" not found`);
  }
  const name = provisionedName(claim);
  const volume = await plugin
    .newProvisioner({
      reclaimPolicy: (storageClass.reclaimPolicy ?? "Delete") as "Delete" | "Retain",
      mountOptions,
      pvName: name,
      pvc: claim,
      clusterName: context.clusterName,
      cloudTags: {
        "kubernetes.io/created-for/pvc/namespace": claim.metadata.namespace ?? "",
        "kubernetes.io/created-for/pvc/name": claim.metadata.name,
        "kubernetes.io/created-for/pv/name": name,
      },
      parameters: storageClass.parameters ?? {},
    })
    .provision(
      node === undefined ? undefined : { name: node.metadata.name, labels: node.metadata.labels ?? {} },
      (storageClass.allowedTopologies ?? []) as never,
      signal,
    );
  return completeVolume(volume, claim, storageClass, plugin.pluginName);
}

/** The plugin's volume with what the controller adds: whose it is and who made it. */
function completeVolume(
  volume: PersistentVolume,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass,
  pluginName: string,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const marked = withAnnotation(
    withAnnotation(volume, boundByControllerAnnotation, "yes"),
    provisionedByAnnotation,
    pluginName,
  );
  return {
    ...marked,
    spec: {
      ...marked.spec,
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        name,
        ...(namespace === undefined ? {} : { namespace }),
        uid,
        resourceVersion,
      },
      storageClassName: storageClass.metadata?.name ?? classOfClaim(claim),
    },
    status: { phase: "Bound" },
  };
}

/** Stores the volume, or takes the disk away again when that cannot be done. */
async function store(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  volume: PersistentVolume,
  plugin: ProvisionableVolumePlugin,
  signal: AbortSignal,
): Promise<void> {
  const { kube, clock } = context.env;
  for (let attempt = 1; ; attempt++) {
    try {
      await kube.create(resources.persistentVolumes, volume, { signal });
      return;
    } catch (error) {
      if (isAlreadyExists(error)) return;
      if (signal.aborted) throw error;
      if (attempt < storeAttempts) {
        await clock.sleep(storePauseMs, signal);
        continue;
      }
      const message = `Error creating provisioned PV object for claim ${keyOf(claim)}: ${errorChain(error)}. Deleting the volume.`;
      tell(context, claim, "Warning", "ProvisioningFailed", message);
      await deleteAsset(context, claim, volume, plugin.pluginName, signal);
      throw error;
    }
  }
}

/** Deletes what was made and could not be stored. */
async function deleteAsset(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  volume: PersistentVolume,
  pluginName: string,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const plugin = context.plugins.findDeletablePluginByName(pluginName);
      await plugin.newDeleter(specOfPersistentVolume(volume, false)).delete(signal);
      return;
    } catch (error) {
      if (signal.aborted) throw error;
      if (attempt < storeAttempts) {
        await context.env.clock.sleep(storePauseMs, signal);
        continue;
      }
      const message = `Error cleaning provisioned volume for claim ${keyOf(claim)}: ${errorChain(error)}. Please delete manually.`;
      tell(context, claim, "Warning", "ProvisioningCleanupFailed", message);
      throw error;
    }
  }
}

/**
 * Brings an in-tree provisioning that was begun to its end. True when the claim needs nothing more in
 * this pass.
 *  - The volume is stored: the finalizer goes.
 *  - The claim is being deleted before that: whatever was made is deleted, then the finalizer goes.
 */
export async function finishProvisioningIntent(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(claim.metadata.finalizers ?? []).includes(provisioningFinalizer)) return false;
  const provisioner = storageProvisionerOf(claim.metadata.annotations);
  // The finalizer of a claim that was handed over belongs to the external provisioner.
  if (provisioner === undefined || context.migration.isMigrationEnabledForPlugin(provisioner)) return false;
  const plugin = context.plugins.plugins.find(({ pluginName }) => pluginName === provisioner);
  if (plugin === undefined || !isProvisionable(plugin)) return false;
  const name = provisionedName(claim);
  const stored =
    context.volumes.get(name) ??
    (await context.env.kube.get(resources.persistentVolumes, { name }, { signal }));
  if (stored !== undefined) {
    await context.env.kube.update(resources.persistentVolumeClaims, withoutFinalizer(claim), { signal });
    return true; // Its own change brings the claim back.
  }
  if (!isDeleting(claim)) return false;
  const key = { volumeName: operationName(claim) };
  context.executor.startOperation(key, `abandon-${key.volumeName}`, (within) =>
    abandon(context, claim, plugin, within),
  );
  return true;
}

/** Finds what a begun provisioning made (by making it, which is idempotent) and deletes it. */
async function abandon(
  context: PersistentVolumeContext,
  seen: Stored<PersistentVolumeClaim>,
  plugin: ProvisionableVolumePlugin,
  signal: AbortSignal,
): Promise<void> {
  const { kube } = context.env;
  const ref = { namespace: seen.metadata.namespace ?? "", name: seen.metadata.name };
  const claim = await kube.get(resources.persistentVolumeClaims, ref, { signal });
  if (claim === undefined || claim.metadata.uid !== seen.metadata.uid) return;
  const storageClass = context.classes.get(classOfClaim(claim));
  if (storageClass === undefined)
    throw new Error(`storageclass.storage.k8s.io "${classOfClaim(claim)}" not found`);
  const selected = claim.metadata.annotations?.[selectedNodeAnnotation];
  const volume = await callPlugin(context, claim, storageClass, plugin, selected, signal);
  await deleteAsset(context, claim, volume, plugin.pluginName, signal);
  await kube.update(resources.persistentVolumeClaims, withoutFinalizer(claim), { signal });
}

/** Removes the selected node from the claim, so that the scheduler chooses again. */
async function unselectNode(
  context: PersistentVolumeContext,
  claim: Stored<PersistentVolumeClaim>,
  signal: AbortSignal,
): Promise<void> {
  const after = withAnnotation(claim, selectedNodeAnnotation, undefined);
  await save(context, resources.persistentVolumeClaims, claim, after, signal);
}

/** After these the disk may have been made: the same place has to be tried again. */
function isUncertain(error: unknown): boolean {
  return (error instanceof CloudError && error.code === "Unavailable") || error instanceof DeadlineError;
}

function withFinalizer(claim: Stored<PersistentVolumeClaim>): Stored<PersistentVolumeClaim> {
  const finalizers = claim.metadata.finalizers ?? [];
  if (finalizers.includes(provisioningFinalizer)) return claim;
  return { ...claim, metadata: { ...claim.metadata, finalizers: [...finalizers, provisioningFinalizer] } };
}

function withoutFinalizer(claim: Stored<PersistentVolumeClaim>): Stored<PersistentVolumeClaim> {
  const finalizers = (claim.metadata.finalizers ?? []).filter((name) => name !== provisioningFinalizer);
  return { ...claim, metadata: { ...claim.metadata, finalizers } };
}
