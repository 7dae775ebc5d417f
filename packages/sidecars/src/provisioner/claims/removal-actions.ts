/** The actions that make sure that no volume stays behind (docs/contract.md C3, C4). */
import { observeAgain, refOf, resources } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { ProvisionError } from "../create-outcome.ts";
import { deleteDisk, secretsUnlessGone } from "../requests/volume-calls.ts";
import { after, type ClaimActions, claimOf, failedWith } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { Lookup, ObservedClaim, Removal, RemovalStep, Unwanted } from "./claim-step.ts";
import { findVolume, leftoverError, lookupSecrets, prepareForDeletion } from "./leftover.ts";
import { standsFor } from "./stands-for.ts";

/** The cache lags for some milliseconds, seldom for longer. */
const CACHE_LAG_MS = 1000;

/** The actions of {@link RemovalStep}. */
export function removalActions(context: ClaimContext): Pick<ClaimActions, RemovalStep["step"]> {
  return { ...vanishedActions(context), ...lookupActions(context), ...deletionActions(context) };
}

function vanishedActions(
  context: ClaimContext,
): Pick<ClaimActions, "confirmVanished" | "awaitCache" | "forgetAttempt"> {
  const { env, memory } = context;
  return {
    async confirmVanished({ attempt }, observed, { signal }) {
      const { name, namespace = "", uid } = attempt.claim.metadata;
      const live = await env.kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
      return after(context, observed, { onServer: live?.metadata.uid === uid ? "wanted" : "gone" });
    },
    awaitCache: () => ({ requeueAfterMs: CACHE_LAG_MS }),
    forgetAttempt({ attempt }, { key }) {
      if (attempt.isStoringUncertain) {
        const { made, prepared } = attempt;
        const volume = { key, volume: prepared.pvName, volumeId: made?.volumeId };
        env.logger.warn("the claim is gone, and its volume may have been stored: the disk is kept", volume);
      }
      memory.forget(key, attempt.claim.metadata.uid);
      // Another claim may have the name by now, and has waited for this pass.
      return observeAgain;
    },
  };
}

function lookupActions(
  context: ClaimContext,
): Pick<ClaimActions, "prepareLookup" | "readLookupSecret" | "findVolume"> {
  const found = (observed: ObservedClaim, lookup: Lookup) =>
    after(context, observed, { lookup: { ...observed.work.lookup, ...lookup } });
  return {
    async prepareLookup(_, observed, { signal }) {
      const { storageClass } = observed;
      const prepared = await prepareForDeletion(context, claimOf(observed), storageClass, signal);
      return found(observed, { prepared });
    },
    async readLookupSecret({ prepared }, observed, { signal }) {
      try {
        const secrets = await lookupSecrets(context, prepared, signal);
        return found(observed, { secrets: () => secrets });
      } catch (error) {
        if (signal.aborted) throw error;
        return failedWith(observed, { error, isCleanup: true });
      }
    },
    async findVolume({ prepared, secrets }, observed, { signal }) {
      try {
        return found(observed, { found: await findVolume(context, prepared, secrets(), signal) });
      } catch (error) {
        if (signal.aborted) throw error;
        return failedWith(observed, {
          error: leftoverError(prepared, secrets() === "gone", error),
          isCleanup: true,
        });
      }
    },
  };
}

function deletionActions(
  context: ClaimContext,
): Pick<ClaimActions, "readStoredVolume" | "readDeletionSecret" | "deleteVolume"> {
  const { kube, driver } = context;
  return {
    readStoredVolume: (step, observed, { signal }) =>
      removing(context, step, observed, signal, async () => {
        const { prepared, volumeId } = step;
        const stored = await kube.get(resources.persistentVolumes, { name: prepared.pvName }, { signal });
        if (stored === undefined) return { isStored: await wasGivenUp(context, step, observed, signal) };
        return { isStored: standsFor(stored, driver.name, volumeId, prepared.migrated) };
      }),
    readDeletionSecret: (step, observed, { signal }) =>
      removing(context, step, observed, signal, async () => {
        const secrets = await secretsUnlessGone(context, step.prepared.deletionSecret, signal);
        return { secrets: () => secrets };
      }),
    deleteVolume: (step, observed, { signal }) =>
      removing(context, step, observed, signal, async () => {
        const { prepared, volumeId, secrets } = step;
        await deleteDisk(context, { volumeId, migrated: prepared.migrated }, secrets(), signal);
        return { isDeleted: true };
      }),
  };
}

/**
 * Whether there was a PersistentVolume: its claim is bound to it, or is gone since an attempt to store it got no answer.
 * Pods may have written to the disk, and who deleted the object has it.
 */
async function wasGivenUp(
  { kube }: ClaimContext,
  { prepared: { pvName } }: Unwanted,
  { claim, attempt, isVanished }: ObservedClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const subject = isVanished ? attempt?.claim : claim;
  const live = subject && (await kube.get(resources.persistentVolumeClaims, refOf(subject), { signal }));
  if (live !== undefined && live.metadata.uid === subject?.metadata.uid)
    return live.spec?.volumeName === pvName;
  return attempt?.isStoringUncertain === true;
}

async function removing(
  context: ClaimContext,
  unwanted: Unwanted,
  observed: ObservedClaim,
  signal: AbortSignal,
  work: () => Promise<Removal>,
) {
  try {
    const removal = { ...observed.work.removal, ...(await work()) };
    return after(context, observed, { removal });
  } catch (cause) {
    if (signal.aborted) throw cause;
    const { prepared, volumeId, why } = unwanted;
    const what = `${why}; volume ${volumeId} cannot be deleted yet: ${errorChain(cause)}`;
    const error = new ProvisionError("Background", what, { cause });
    const { lookup } = observed.work;
    if (lookup === undefined) return failedWith(observed, { error });
    const isSecretGone = lookup.secrets?.() === "gone";
    return failedWith(observed, { error: leftoverError(prepared, isSecretGone, error), isCleanup: true });
  }
}
