/**
 * What an uncertain CreateVolume may have left: found by asking for it again under its name, and deleted.
 *
 * Invariant: the intent is removed from a claim only after the driver said, in answer to the same request as before,
 * that there is no volume of the name, or after the volume was deleted.
 */
import type { PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import { provisioningFinalizer } from "@longshore/storage";
import { SecretMissingError } from "../../common/secret-values.ts";
import { selectedNodeOf } from "../claim-writes.ts";
import { ProvisionError, provesAbsence } from "../create-outcome.ts";
import type { RequestContext } from "../requests/request-context.ts";
import {
  type AttemptContext,
  askForVolume,
  provisioningSecrets,
  type SecretValues,
} from "../requests/volume-calls.ts";
import { type PreparedVolume, prepareVolume } from "../requests/volume-request.ts";

/** What was found under the name: the driver's volume, or certainly none. */
export type Found = { readonly volumeId: string } | "none";

/** Secrets for looking a volume up; `gone`: there is no such secret any more, which a driver may manage without. */
export async function lookupSecrets(
  context: AttemptContext,
  prepared: PreparedVolume,
  signal: AbortSignal,
): Promise<SecretValues | "gone"> {
  try {
    return await provisioningSecrets(context, prepared, signal);
  } catch (error) {
    if (error instanceof ProvisionError && error.cause instanceof SecretMissingError) return "gone";
    throw error;
  }
}

/** Asks for the volume again. Without its secret, that there is none proves nothing. @throws ProvisionError */
export async function findVolume(
  context: AttemptContext,
  prepared: PreparedVolume,
  secrets: SecretValues | "gone",
  signal: AbortSignal,
): Promise<Found> {
  try {
    const given = secrets === "gone" ? {} : secrets;
    const { volumeId } = await askForVolume(context, prepared, given, signal);
    return { volumeId };
  } catch (error) {
    // `true`: the volume is searched for because an earlier call may have made it.
    if (secrets !== "gone" && provesAbsence(error, true)) return "none";
    throw error;
  }
}

/** Why the volume may still be there, with the remedy. */
export function leftoverError(
  { pvName, deletionSecret }: PreparedVolume,
  isSecretGone: boolean,
  cause: unknown,
): ProvisionError {
  const { name, namespace } = deletionSecret ?? {};
  const remedy = isSecretGone
    ? `the secret ${namespace}/${name} for looking it up is gone, create it again`
    : "it is looked for again";
  return new ProvisionError(
    "Background",
    `a volume ${pvName} may be left: ${remedy}, or take the finalizer ${provisioningFinalizer} off the claim once the driver has no such volume`,
    { cause },
  );
}

/**
 * Prepares the request of a claim whose volume is only looked up, to be deleted: if need be without the topology of the
 * selected node, and without its source.
 */
export async function prepareForDeletion(
  context: RequestContext,
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
