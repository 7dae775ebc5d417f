/** When a pass over a snapshot or a group snapshot is followed by another. */
import type { ReconcileResult } from "@longshore/kube";

/** Look at once: there may be more to do, and the caches show by then what was done. */
export const again: ReconcileResult = { requeueAfterMs: 0 };

/** A cache that is behind is looked at again after this time. */
export const CACHE_LAG_MS = 1000;
