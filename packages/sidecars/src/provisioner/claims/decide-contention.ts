/** The decision whether a claim with immediate binding is taken for this provisioner's node (docs/behaviour/sidecars.md 2.10). Pure. */
import type { ClaimStep, ObservedContention } from "./claim-step.ts";

/** The next step. Each provisioner first waits for a delay of its own, so that conflicts are rare. */
export function decideContention(contention: ObservedContention): ClaimStep {
  const { isOurs, isFit, races, dueInMs, hasRoom, isLost } = contention;
  if (!isOurs) return { step: "settle" };
  if (!isFit) return { step: "leaveContention" };
  if (races === undefined) return { step: "pauseContention", races: 0 };
  if (isLost) return { step: "pauseContention", races: races + 1 };
  if (dueInMs > 0) return { step: "awaitTurn", ms: dueInMs };
  // Asked as late as possible.
  if (hasRoom === undefined) return { step: "askForRoom" };
  return hasRoom ? { step: "takeClaim" } : { step: "pauseContention", races };
}
