/**
 * The actions of the steps of one disk. An action that awaits observes again before anything is done on what it read, or
 * holds the operation of the disk; a call to a provider runs in the background and wakes the disk at its end.
 * Source: docs/behaviour/controllers.md A7, A9.
 */
import { type Actions, observeAgain, settled } from "@longshore/kube";
import type { AttachDetachContext } from "../attach-detach-context.ts";
import { attachActions } from "./attach-actions.ts";
import { detachActions } from "./detach-actions.ts";
import type { DiskStep } from "./disk-step.ts";
import type { ObservedDisk } from "./observe-disk.ts";

/** All of them. */
export function diskActions(context: AttachDetachContext): Actions<ObservedDisk, DiskStep> {
  return {
    ...attachActions(context),
    ...detachActions(context),
    noteDetaching({ operation, firstVersion, seenAttached }) {
      context.operations.progress(operation, { firstVersion, seenAttached });
      return observeAgain;
    },
    wait({ reason, retryInMs }, { identity }) {
      context.env.logger.debug("disk waits", { volume: identity, reason });
      return retryInMs === undefined ? settled : { requeueAfterMs: retryInMs };
    },
    forgetDisk(_step, { identity }) {
      context.operations.forget(identity);
      return settled;
    },
  };
}
