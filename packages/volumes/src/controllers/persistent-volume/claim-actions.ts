/** The actions of the claims controller, one for each step. Source: docs/behaviour/controllers.md B3, B4, B6. */
import {
  type Actions,
  isInvalid,
  observeAgain,
  type PersistentVolumeClaim,
  refOf,
  resources,
  type Stored,
  settled,
  withoutFinalizer,
} from "@longshore/kube";
import { provisioningFinalizer } from "@longshore/storage";
import { claimInPhase } from "./bound-objects.ts";
import type { ClaimObservation, ClaimStep } from "./decide-claim-step.ts";
import { reportOnClaim } from "./events.ts";
import type { PersistentVolumeContext } from "./persistent-volume-context.ts";
import { claimGivenTo } from "./provisioner-choice.ts";

type ClaimActions = Actions<ClaimObservation, ClaimStep>;
type BindActions = Pick<
  ClaimActions,
  "bindVolume" | "waitForVolume" | "markVolumeBound" | "bindClaim" | "markClaimBound"
>;

/** About the time of one write, in milliseconds. */
const takenMs = 100;

const { persistentVolumes, persistentVolumeClaims } = resources;

/** The actions over these seams. */
export function claimActions(context: PersistentVolumeContext): ClaimActions {
  const { kube } = context.env;
  return {
    ...bindActions(context),
    ...provisionActions(context),
    assignClass: assignClass(context),
    confirmClaim: confirmClaim(context),
    async markMigration({ claim }, observed, { signal }) {
      const marked = await kube.update(persistentVolumeClaims, claim, { signal });
      return { observed: withClaim(observed, marked) };
    },
    report(step, observed) {
      reportOnClaim(context.events, observed.claim, step);
      return { observed: { ...observed, isReported: true } };
    },
    async setPhase({ phase }, observed, { signal }) {
      const after = claimInPhase(observed.claim, phase);
      const claim = await kube.updateStatus(persistentVolumeClaims, after, { signal });
      return { observed: { ...withClaim(observed, claim), hasNewPhase: true } };
    },
    refuse({ message }) {
      throw new Error(message);
    },
    settle: () => settled,
  };
}

/** A server before Kubernetes 1.26 refuses: the claim stays as it is, and the pass goes on. */
function assignClass({ env }: PersistentVolumeContext): ClaimActions["assignClass"] {
  return async ({ className }, observed, { signal }) => {
    const { claim } = observed;
    const after = { ...claim, spec: { ...claim.spec, storageClassName: className } };
    try {
      await env.kube.update(persistentVolumeClaims, after, { signal });
      return settled; // Its own change wakes the claim, with its class.
    } catch (error) {
      if (!isInvalid(error)) throw error;
      return { observed: { ...observed, isClassFixed: true } };
    }
  };
}

/** A claim that has changed, or is gone: the cache is about to show it, and that wakes the key. */
function confirmClaim({ env }: PersistentVolumeContext): ClaimActions["confirmClaim"] {
  return async (_step, observed, { signal }) => {
    const { uid, resourceVersion } = observed.claim.metadata;
    const live = await env.kube.get(persistentVolumeClaims, refOf(observed.claim), { signal });
    const isSame = live?.metadata.uid === uid && live.metadata.resourceVersion === resourceVersion;
    return isSame ? { observed: { ...observed, isLive: true } } : settled;
  };
}

function provisionActions(
  context: PersistentVolumeContext,
): Pick<ClaimActions, "removeIntent" | "provision" | "handOver"> {
  const { env, provisioners, wakes, compat } = context;
  return {
    async removeIntent(_step, { claim }, { signal }) {
      const after = withoutFinalizer(claim, provisioningFinalizer);
      await env.kube.update(persistentVolumeClaims, after, { signal });
      return settled; // Its own change wakes the claim.
    },
    provision(_step, _observed, { key }) {
      wakes.provisioning(key);
      return settled;
    },
    async handOver({ provisioner }, observed, { signal }) {
      const after = claimGivenTo(observed.claim, provisioner, provisioners.migration, compat);
      const claim = await env.kube.update(persistentVolumeClaims, after, { signal });
      return { observed: withClaim(observed, claim) };
    },
  };
}

function bindActions({ env, taken }: PersistentVolumeContext): BindActions {
  const { kube } = env;
  return {
    async bindVolume(step, observed, { key, signal }) {
      const write = () => kube.update(persistentVolumes, step.volume, { signal });
      const volume = await taken.whileTaken(step.volume.metadata.name, key, write);
      // Another worker has begun to bind it since: choose again.
      return volume === undefined ? observeAgain : { observed: { ...observed, volume } };
    },
    waitForVolume: () => ({ requeueAfterMs: takenMs }),
    async markVolumeBound(step, observed, { signal }) {
      const volume = await kube.updateStatus(persistentVolumes, step.volume, { signal });
      return { observed: { ...observed, volume } };
    },
    async bindClaim(step, observed, { signal }) {
      const claim = await kube.update(persistentVolumeClaims, step.claim, { signal });
      return { observed: withClaim(observed, claim) };
    },
    async markClaimBound(step, _observed, { signal }) {
      await kube.updateStatus(persistentVolumeClaims, step.claim, { signal });
      return settled;
    },
  };
}

/** What is observed, with the claim as it was stored just now. */
function withClaim(observed: ClaimObservation, claim: Stored<PersistentVolumeClaim>): ClaimObservation {
  return { ...observed, claim, migrated: claim };
}
