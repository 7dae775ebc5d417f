/** The actions towards a stored volume (docs/behaviour/sidecars.md 2.3). */
import {
  type EventSubject,
  involvedObject,
  isAlreadyExists,
  isDeleting,
  KubeApiError,
  resources,
} from "@longshore/kube";
import { storeIntent } from "../claim-writes.ts";
import { provesAbsence } from "../create-outcome.ts";
import { completedVolume } from "../requests/completed-volume.ts";
import { readVolumeAnswer, type VolumeAnswer } from "../requests/volume-answer.ts";
import { askForVolume, provisioningSecrets } from "../requests/volume-calls.ts";
import { protectSource } from "../sources/protect-source.ts";
import { after, type ClaimActions, claimOf, failedWith } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ClaimWork, ObservedClaim, ProvisionStep } from "./claim-step.ts";
import { preparationActions } from "./preparation-actions.ts";

type StepOf<K extends ProvisionStep["step"]> = Extract<ProvisionStep, { readonly step: K }>;

/** The actions of {@link ProvisionStep}, and how a request ends that cannot be met. */
export function provisionActions(
  context: ClaimContext,
): Pick<ClaimActions, ProvisionStep["step"] | "refuse" | "fail"> {
  const { memory, metrics, env } = context;
  return {
    ...preparationActions(context),
    async readSecret({ prepared }, observed, { signal }) {
      const secrets = await provisioningSecrets(context, prepared, signal);
      return after(context, observed, { secrets: () => secrets });
    },
    async protectSource({ source }, observed, { signal }) {
      await protectSource(context, source, signal);
      return after(context, observed, { isSourceProtected: true });
    },
    async storeIntent(_, observed, { signal }) {
      const claim = await storeIntent(context, claimOf(observed), signal);
      return after(context, { ...observed, claim }, { isIntentStored: true });
    },
    reportBegin(_, observed) {
      const message = `External provisioner is provisioning volume for claim "${observed.key}"`;
      context.events.event(subjectOf(observed), "Normal", "Provisioning", message);
      return after(context, observed, { isBeginReported: true });
    },
    createVolume: (step, observed, { signal }) => createVolume(context, step, observed, signal),
    async confirmClaim(_, observed, { signal }) {
      return after(context, observed, { onServer: await lookForClaim(context, observed, signal) });
    },
    storeVolume: (step, observed, { signal }) => storeVolume(context, step, observed, signal),
    reportSuccess({ prepared }, observed) {
      const message = `Successfully provisioned volume ${prepared.pvName}`;
      context.events.event(subjectOf(observed), "Normal", "ProvisioningSucceeded", message);
      return after(context, observed, { isSuccessReported: true });
    },
    account({ prepared, isProvisioned }, observed) {
      const claim = claimOf(observed);
      memory.settle(observed.key, claim, prepared);
      if (isProvisioned) metrics.provisioned(claim, env.clock.monotonicMs() - observed.startedMs);
      return after(context, observed, { isAccounted: true });
    },
    refuse: ({ message }, observed) => failedWith(observed, { error: new Error(message) }),
    fail: ({ error }, observed) => failedWith(observed, { error }),
    rejectVolume({ error }, observed) {
      settleIfAbsent(context, observed, error);
      return failedWith(observed, { error });
    },
  };
}

/** The event's subject. */
function subjectOf(observed: ObservedClaim): EventSubject {
  return involvedObject(resources.persistentVolumeClaims, claimOf(observed));
}

/** From here until its outcome is accounted for, the volume may exist. */
async function createVolume(
  context: ClaimContext,
  { prepared, secrets }: StepOf<"createVolume">,
  observed: ObservedClaim,
  signal: AbortSignal,
) {
  const { key, attempt } = observed;
  const claim = claimOf(observed);
  const { memory } = context;
  memory.begin(key, { ...attempt, claim, prepared });
  let answer: VolumeAnswer;
  try {
    const volume = await askForVolume(context, prepared, secrets(), signal);
    answer = readVolumeAnswer(context, prepared, claim, volume);
  } catch (error) {
    settleIfAbsent(context, observed, error);
    throw error;
  } finally {
    context.onCapacityChanged(prepared.storageClass.metadata?.name ?? "");
  }
  // A pass that cannot store the object is continued from here, without a second CreateVolume.
  if ("made" in answer) memory.begin(key, { claim, prepared, made: answer.made });
  return after(context, observed, answer);
}

/** After an answer from which it follows that there is no volume, none needs to be looked for. */
function settleIfAbsent({ memory }: ClaimContext, { key, mayExist }: ObservedClaim, error: unknown): void {
  const attempt = memory.attempt(key);
  if (attempt !== undefined && provesAbsence(error, mayExist))
    memory.settle(key, attempt.claim, attempt.prepared);
}

/** Whether the claim wants its volume, by the server's word. One that is bound has it, or has had it. */
async function lookForClaim(
  { env }: ClaimContext,
  observed: ObservedClaim,
  signal: AbortSignal,
): Promise<NonNullable<ClaimWork["onServer"]>> {
  const { name, namespace = "", uid } = claimOf(observed).metadata;
  const live = await env.kube.get(resources.persistentVolumeClaims, { name, namespace }, { signal });
  const isOpen = live?.metadata.uid === uid && !isDeleting(live) && !live.spec?.volumeName;
  return isOpen ? "wanted" : "gone";
}

async function storeVolume(
  context: ClaimContext,
  { prepared, made }: StepOf<"storeVolume">,
  observed: ObservedClaim,
  signal: AbortSignal,
) {
  const pv = completedVolume(context, made.pv, claimOf(observed), prepared);
  try {
    await context.env.kube.create(resources.persistentVolumes, pv, { signal });
    return after(context, observed, { stored: "created" });
  } catch (error) {
    if (isAlreadyExists(error)) return after(context, observed, { stored: "taken" });
    const isRefused = error instanceof KubeApiError && error.code < 500;
    if (!isRefused) {
      const claim = claimOf(observed);
      context.memory.begin(observed.key, { claim, prepared, made, isStoringUncertain: true });
    }
    throw error;
  }
}
