/** What the provisioning controller reads before it decides. Source: docs/behaviour/controllers.md B6. */
import {
  hasFinalizer,
  isDeleting,
  type KubeEnv,
  type Node,
  type Pass,
  type PersistentVolumeClaim,
  refOfKey,
  resources,
  type StorageClass,
  type Stored,
  withFinalizer,
} from "@longshore/kube";
import { provisioningFinalizer, selectedNodeAnnotation } from "@longshore/storage";
import type { ProvisionableVolumePlugin } from "../../framework/volume-plugin.ts";
import { classOfClaim } from "./annotations.ts";
import type { PersistentVolumeContext } from "./persistent-volume-context.ts";
import { provisionedName } from "./provisioned-volume.ts";
import {
  chooseProvisioner,
  claimGivenTo,
  inTreeProvisionerOf,
  type Provisioners,
} from "./provisioner-choice.ts";
import type { ProvisioningObservation } from "./provisioning-observation.ts";

type Claim = Stored<PersistentVolumeClaim>;

/** Observes a claim and its volume, both live; undefined when the claim is gone. */
export async function observeProvisioning(
  context: PersistentVolumeContext,
  key: string,
  { signal }: Pass,
): Promise<ProvisioningObservation | undefined> {
  const { env, caches, attempts, provisioners, compat } = context;
  const claim = await env.kube.get(resources.persistentVolumeClaims, refOfKey(key), { signal });
  if (claim === undefined) return undefined;
  const name = provisionedName(claim);
  const volume = await env.kube.get(resources.persistentVolumes, { name }, { signal });
  const storageClass = caches.classes.get(classOfClaim(claim));
  const plugin = pluginFor(provisioners, claim, storageClass);
  const claimGiven =
    storageClass === undefined
      ? claim
      : claimGivenTo(claim, storageClass.provisioner, provisioners.migration, compat);
  const hasNoIntent = storageClass === undefined || compat;
  return {
    claim,
    claimGiven,
    claimWithIntent: hasNoIntent ? claimGiven : withFinalizer(claimGiven, provisioningFinalizer),
    isBegun: plugin !== undefined && hasFinalizer(claim, provisioningFinalizer),
    volume,
    storageClass,
    plugin,
    node: await selectedNode(env, claim, signal),
    waitMs: attempts.waitMs(provisioningOf(claim)),
  };
}

/** Identifies the operation: a failure of making a volume delays its removal not, and no other claim of the name. */
export function provisioningOf(claim: Claim): string {
  return `${isDeleting(claim) ? "abandon" : "provision"}-${provisionedName(claim)}`;
}

function pluginFor(
  provisioners: Provisioners,
  claim: Claim,
  storageClass: StorageClass | undefined,
): ProvisionableVolumePlugin | undefined {
  if (isDeleting(claim)) return inTreeProvisionerOf(provisioners, claim);
  if (storageClass === undefined) return undefined;
  const choice = chooseProvisioner(provisioners, storageClass);
  return choice.kind === "in-tree" ? choice.plugin : undefined;
}

async function selectedNode(
  { kube }: KubeEnv,
  claim: Claim,
  signal: AbortSignal,
): Promise<Stored<Node> | undefined> {
  const name = claim.metadata.annotations?.[selectedNodeAnnotation];
  return name === undefined ? undefined : kube.get(resources.nodes, { name }, { signal });
}
