/**
 * What an uncertain CreateVolume may have left: found by asking for it again under its name, and deleted.
 *
 * Invariant: the intent is removed from a claim only after the driver said, in answer to the same request as before,
 * that there is no volume of the name, or after the volume was deleted.
 */
import {
  type EventRecorder,
  involvedObject,
  type PersistentVolumeClaim,
  resources,
  type StorageClass,
  type Stored,
} from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { provisioningFinalizer } from "@longshore/storage";
import { SecretMissingError } from "../common/secret-values.ts";
import { selectedNodeOf } from "./claim-writes.ts";
import { ProvisionError, provesAbsence } from "./create-outcome.ts";
import {
  type AttemptContext,
  askForVolume,
  provisioningSecrets,
  removeUnwanted,
  type SecretValues,
} from "./provision-volume.ts";
import { type PreparedVolume, prepareVolume, type RequestContext } from "./volume-request.ts";

/** What cleaning up works with. */
export interface LeftoverContext extends RequestContext, AttemptContext {
  readonly events: Pick<EventRecorder, "event">;
}

/** Makes sure that nothing is left; failures are reported in an event on the claim and thrown, to be retried. */
export async function removeLeftover(
  context: LeftoverContext,
  claim: Stored<PersistentVolumeClaim>,
  prepared: PreparedVolume,
  signal: AbortSignal,
): Promise<void> {
  try {
    await findAndRemove(context, prepared, signal);
  } catch (error) {
    if (!signal.aborted) {
      const subject = involvedObject(resources.persistentVolumeClaims, claim);
      context.events.event(subject, "Warning", "ProvisioningCleanupFailed", errorChain(error));
    }
    throw error;
  }
}

async function findAndRemove(
  context: LeftoverContext,
  prepared: PreparedVolume,
  signal: AbortSignal,
): Promise<void> {
  const secrets = await secretsUnlessGone(context, prepared, signal);
  try {
    const { volumeId } = await askForVolume(context, prepared, secrets ?? {}, signal);
    await removeUnwanted(context, prepared, volumeId, "the claim no longer wants its volume", signal);
  } catch (error) {
    if (secrets !== undefined && provesAbsence(error, true)) return;
    if (signal.aborted) throw error;
    const { name, namespace } = prepared.deletionSecret ?? {};
    const remedy =
      secrets === undefined
        ? `the secret ${namespace}/${name} for looking it up is gone, create it again`
        : "it is looked for again";
    throw new ProvisionError(
      "Background",
      `a volume ${prepared.pvName} may be left: ${remedy}, or take the finalizer ${provisioningFinalizer} off the claim once the driver has no such volume`,
      { cause: error },
    );
  }
}

/** Undefined: there is no such secret any more, which a driver may manage without. */
async function secretsUnlessGone(
  context: LeftoverContext,
  prepared: PreparedVolume,
  signal: AbortSignal,
): Promise<SecretValues | undefined> {
  try {
    return await provisioningSecrets(context, prepared, signal);
  } catch (error) {
    if (error instanceof ProvisionError && error.cause instanceof SecretMissingError) return undefined;
    throw error;
  }
}

/**
 * The request of a claim whose volume is only to be found again: if need be wherever the driver likes, and without its
 * source, which is no reason not to look.
 */
export async function prepareAnyhow(
  context: LeftoverContext,
  claim: Stored<PersistentVolumeClaim>,
  storageClass: StorageClass | undefined,
  signal: AbortSignal,
): Promise<PreparedVolume> {
  if (storageClass === undefined) {
    throw new Error(
      "the claim's StorageClass is gone, so that its volume cannot be looked for: create the class again",
    );
  }
  const anywhere = { ...context, settings: { ...context.settings, immediateTopology: false } };
  const attempts = [
    () => prepareVolume(context, claim, storageClass, selectedNodeOf(claim), signal),
    () => prepareVolume(anywhere, claim, storageClass, undefined, signal),
    () => prepareVolume(anywhere, withoutSource(claim), storageClass, undefined, signal),
  ];
  let failure: unknown;
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  }
  throw failure;
}

function withoutSource(claim: Stored<PersistentVolumeClaim>): Stored<PersistentVolumeClaim> {
  const { dataSource: _, dataSourceRef: __, ...spec } = claim.spec ?? {};
  return { ...claim, spec };
}
