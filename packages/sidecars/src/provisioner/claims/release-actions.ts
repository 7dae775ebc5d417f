/** The actions that end the work on a claim. */
import { settled } from "@longshore/kube";
import { removeIntent, removeSelectedNode } from "../claim-writes.ts";
import { freeSnapshot, sourceToFree } from "../sources/protect-source.ts";
import { after, type ClaimActions, claimOf } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ReleaseStep } from "./claim-step.ts";

/** The actions of {@link ReleaseStep}, and of leaving a claim to another node's provisioner. */
export function releaseActions(
  context: ClaimContext,
): Pick<ClaimActions, ReleaseStep["step"] | "leaveToOthers"> {
  const { memory, env } = context;
  return {
    async removeSelectedNode(_, observed, { signal }) {
      await removeSelectedNode(context, claimOf(observed), signal);
      return settled;
    },
    async removeIntent(_, observed, { signal }) {
      await removeIntent(context, claimOf(observed), signal);
      return after(context, observed, { isIntentRemoved: true });
    },
    forget(_, observed) {
      const claim = claimOf(observed);
      memory.forget(observed.key, claim.metadata.uid);
      return after(context, observed, { isForgotten: true, sourceToFree: sourceToFree(context, claim) });
    },
    async freeSnapshot({ snapshotKey }, { key }, { signal }) {
      try {
        await freeSnapshot(context, snapshotKey, signal);
      } catch (error) {
        // All work on the claim is done: its pass is not repeated for the snapshot.
        if (!signal.aborted) env.logger.debug("a snapshot stays protected until the sweep", { key, error });
      }
      return settled;
    },
    leaveToOthers(_, { key, claim }) {
      if (claim !== undefined) memory.leave(key, claim.metadata.uid);
      return settled;
    },
  };
}
