/**
 * Creates the volumes of claims, and makes sure that none is left behind.
 *
 * Invariants
 *  - The intent (`longshore.dev/provisioning` on the claim) is stored before CreateVolume is called and removed only
 *    once the PersistentVolume is stored or the volume is certainly gone. At most two writes to a claim are made.
 *  - The volume's name is computed from the claim's uid, so that a repeated call finds the volume made before.
 *  - Several claims are worked on at the same time: each has a volume of its own, and no two passes run for one claim.
 *  - What this process remembers only saves work: a restart at any `await` leads to the same end state.
 *  - What decides over a disk's deletion is read from the server at that moment, never from a cache.
 */
import {
  type Controller,
  type ControllerOptions,
  forResource,
  type Informer,
  type PersistentVolumeClaim,
  startController,
} from "@longshore/kube";
import { claimActions } from "./claim-actions.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ClaimStep, ObservedClaim } from "./claim-step.ts";
import { shouldEnqueueClaim } from "./claim-triggers.ts";
import { decideClaim } from "./decide-claim.ts";
import { observeClaim } from "./observe-claim.ts";

/** How the queue of a controller of the provisioner works. */
export type QueueSettings = Pick<
  ControllerOptions<never, never>,
  "workers" | "backoff" | "retryRate" | "resyncMs"
>;

/**
 * Starts the controller of the claims, by `namespace/name`; `claims` may still be filling. Claims of other drivers are left
 * alone. A call to the driver that fails is retried with the delays of `queue`.
 */
export function startClaims(
  context: ClaimContext & { readonly claims: Informer<PersistentVolumeClaim> },
  queue: QueueSettings,
): Controller {
  return startController<ObservedClaim, ClaimStep>(context.env, {
    ...queue,
    name: "provisioner-claims",
    sources: [forResource(context.claims, { changed: shouldEnqueueClaim })],
    observe: (key) => observeClaim(context, key),
    decide: decideClaim,
    actions: claimActions(context),
  });
}
