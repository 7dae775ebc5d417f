/** The actions that make the request for a volume, part by part (docs/behaviour/sidecars.md 2.3). */

import { selectedNodeOf } from "../claim-writes.ts";
import { ProvisionError } from "../create-outcome.ts";
import { selectTopology } from "../requests/select-topology.ts";
import { draftVolume } from "../requests/volume-draft.ts";
import { composeRequest, mutableParameters, withParameters } from "../requests/volume-request.ts";
import { resolveSource } from "../sources/content-source.ts";
import { after, type ClaimActions, claimOf } from "./claim-action.ts";
import type { ClaimContext } from "./claim-context.ts";
import type { ClaimWork, ObservedClaim } from "./claim-step.ts";

type PreparationStep =
  | "draftVolume"
  | "resolveSource"
  | "selectTopology"
  | "composeRequest"
  | "readAttributesClass";

/** The actions. What a request cannot be made for is no failure yet: the decision may have to clean up first. */
export function preparationActions(context: ClaimContext): Pick<ClaimActions, PreparationStep> {
  const preparing = (observed: ObservedClaim, signal: AbortSignal, work: () => Promise<ClaimWork>) =>
    refusing(context, observed, signal, work);
  return {
    draftVolume: (_, observed, { signal }) =>
      preparing(observed, signal, async () => {
        const { storageClass } = observed;
        if (storageClass === undefined) return {};
        return { draft: draftVolume(context, claimOf(observed), storageClass) };
      }),
    resolveSource: ({ source }, observed, { signal }) =>
      preparing(observed, signal, async () => ({
        contentSource: await resolveSource(context, claimOf(observed), source, signal),
      })),
    selectTopology: ({ draft }, observed, { signal }) =>
      preparing(observed, signal, async () => {
        const claim = claimOf(observed);
        return {
          selected: { places: selectTopology(context, claim, draft.storageClass, selectedNodeOf(claim)) },
        };
      }),
    composeRequest: ({ draft, found }, observed, { signal }) =>
      preparing(observed, signal, async () => {
        const claim = claimOf(observed);
        const composed = composeRequest(context, claim, draft, found, selectedNodeOf(claim));
        return draft.attributesClass === undefined ? { prepared: composed } : { composed };
      }),
    readAttributesClass: ({ name, composed }, observed, { signal }) =>
      preparing(observed, signal, async () => ({
        prepared: withParameters(composed, await mutableParameters(context, name, signal)),
      })),
  };
}

async function refusing(
  context: ClaimContext,
  observed: ObservedClaim,
  signal: AbortSignal,
  work: () => Promise<ClaimWork>,
) {
  try {
    return after(context, observed, await work());
  } catch (error) {
    if (signal.aborted || !(error instanceof ProvisionError)) throw error;
    return after(context, observed, { refused: error });
  }
}
