/** `longshore run resizer`: the flags of external-resizer. */
import type { ResizerOptions } from "@longshore/sidecars";
import { releaseGate } from "./common-flags.ts";
import { type ControllerValues, retryBackoff } from "./controller-sidecars.ts";
import { duration, type FlagValues, gates, obsolete, toggle, whole } from "./flag-table.ts";

/** Those of the resizer alone. */
export const resizerFlags = {
  timeout: duration("10s", "deadline of each call to the driver"),
  workers: whole(10, "claims worked on at the same time", 1),
  "resync-period": duration("10m", "every claim is looked at again after this time"),
  "handle-volume-inuse-error": toggle(
    true,
    "a volume that the driver does not expand in use is tried again when its pods have gone",
  ),
  "extra-modify-metadata": toggle(
    false,
    "passes the names of claim and volume to the driver when it modifies",
  ),
  "feature-gates": gates({
    ...releaseGate,
    RecoverVolumeExpansionFailure: {
      default: true,
      locked: true,
      help: "a claim may ask for less after a failed expansion",
    },
    AnnotateFsResize: {
      default: false,
      help: "volumes whose file system has yet to grow carry their old size",
    },
    VolumeAttributesClass: {
      default: true,
      help: "volumes are modified as their VolumeAttributesClass says",
    },
  }),
  csiTimeout: obsolete("text", "use --timeout"),
  "enable-leader-election": obsolete("switch", "use --leader-election"),
  "enable-pprof": obsolete("switch", "profiling is not supported"),
} as const;

/** What they mean. */
export function resizerOptions(
  values: FlagValues<typeof resizerFlags>,
  common: ControllerValues,
): ResizerOptions {
  return {
    timeoutMs: values.timeout,
    workers: values.workers,
    resyncMs: values["resync-period"],
    handleVolumeInUseError: values["handle-volume-inuse-error"],
    extraModifyMetadata: values["extra-modify-metadata"],
    volumeAttributesClass: values["feature-gates"].VolumeAttributesClass,
    annotateFsResize: values["feature-gates"].AnnotateFsResize,
    backoff: retryBackoff(common),
    ...(common.compat === "reference" ? { compat: "reference" as const } : {}),
  };
}
