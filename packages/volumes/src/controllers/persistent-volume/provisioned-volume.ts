/** The volume that an in-tree plugin makes for a claim. Source: docs/behaviour/controllers.md B6. */
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import { provisionedByAnnotation } from "@longshore/storage";
import type {
  AllowedTopologies,
  ProvisionableVolumePlugin,
  Provisioner,
  SelectedNode,
  VolumeOptions,
} from "../../framework/volume-plugin.ts";
import { boundByControllerAnnotation, withAnnotation } from "./annotations.ts";

/** What a volume is made from. */
export interface ProvisionRequest {
  readonly claim: Stored<PersistentVolumeClaim>;
  readonly storageClass: Stored<StorageClass>;
  readonly plugin: ProvisionableVolumePlugin;
  /** The node that a scheduler has chosen for the first pod. */
  readonly node: Stored<Node> | undefined;
  readonly clusterName: string;
}

/** The plugin cannot make any volume: nothing was asked of its provider. */
export class NoProvisionerError extends Error {
  override readonly name = "NoProvisionerError";
}

/** The name of the volume made for a claim: the same for each call, so that calling again finds what was made. */
export function provisionedName(claim: Stored<PersistentVolumeClaim>): string {
  return `pvc-${claim.metadata.uid}`;
}

/**
 * Asks the plugin whether it would make the volume; nothing is made or changed.
 * @throws as {@link makeVolume}, for what the plugin refuses by class, claim, secrets and zones
 */
export async function checkRequest(request: ProvisionRequest, signal: AbortSignal): Promise<void> {
  await provisionerOf(request).check(...placeOf(request), signal);
}

/**
 * Makes the disk, or finds the one that an earlier call has made.
 * @returns its volume, not stored yet
 * @throws NoProvisionerError where the plugin gives no provisioner; else what the provisioner throws
 */
export async function makeVolume(request: ProvisionRequest, signal: AbortSignal): Promise<PersistentVolume> {
  return completeVolume(await provisionerOf(request).provision(...placeOf(request), signal), request);
}

function placeOf({
  storageClass,
  node,
}: ProvisionRequest): [selectedNode: SelectedNode | undefined, allowedTopologies: AllowedTopologies] {
  const selectedNode =
    node === undefined ? undefined : { name: node.metadata.name, labels: node.metadata.labels ?? {} };
  // The plugin's own form of topology terms, with fields that are never missing once they are stored.
  return [selectedNode, (storageClass.allowedTopologies ?? []) as AllowedTopologies];
}

function provisionerOf(request: ProvisionRequest): Provisioner {
  try {
    return request.plugin.newProvisioner(optionsOf(request));
  } catch (cause) {
    throw new NoProvisionerError("Failed to create provisioner", { cause });
  }
}

function optionsOf({ claim, storageClass, clusterName }: ProvisionRequest): VolumeOptions {
  const name = provisionedName(claim);
  return {
    reclaimPolicy: (storageClass.reclaimPolicy ?? "Delete") as "Delete" | "Retain",
    mountOptions: storageClass.mountOptions ?? [],
    pvName: name,
    pvc: claim,
    clusterName,
    cloudTags: {
      "kubernetes.io/created-for/pvc/namespace": claim.metadata.namespace ?? "",
      "kubernetes.io/created-for/pvc/name": claim.metadata.name,
      "kubernetes.io/created-for/pv/name": name,
    },
    parameters: storageClass.parameters ?? {},
  };
}

/** The plugin's volume with what the controller adds: whose it is and who made it. */
function completeVolume(
  made: PersistentVolume,
  { claim, storageClass, plugin }: ProvisionRequest,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const ofController = withAnnotation(made, boundByControllerAnnotation, "yes");
  const marked = withAnnotation(ofController, provisionedByAnnotation, plugin.pluginName);
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    name,
    ...(namespace === undefined ? {} : { namespace }),
    uid,
    resourceVersion,
  };
  return {
    ...marked,
    spec: { ...marked.spec, claimRef, storageClassName: storageClass.metadata.name },
    status: { phase: "Bound" },
  };
}
