/** Which changes wake the size of a claim. Source: docs/behaviour/sidecars.md 4. */
import {
  forResource,
  type Informer,
  keyOf,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Source,
  source,
} from "@longshore/kube";
import { preResizeCapacityAnnotation } from "@longshore/storage";
import { arrivals } from "../common/arrivals.ts";
import type { ResizeContext } from "./resize-context.ts";
import { wantsMore } from "./resize-goal.ts";
import { shouldLook } from "./resize-triggers.ts";

/** The caches of the resizer. */
export interface ResizeCaches {
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
}

/**
 * How long the expand controller has to name the resizer of an in-tree volume, in milliseconds. It does so at every
 * change of the request, even where the name is already set. The expand controller of Kubernetes 1.20 crashes when
 * another client writes in between.
 */
const HAND_OVER_MS = 1000;

/** What wakes the controller over the sizes of claims. @param wakeAfter of that controller */
export function resizeSources(
  { memory, rules }: Pick<ResizeContext, "memory" | "rules">,
  { claims, volumes }: ResizeCaches,
  wakeAfter: (key: string, ms: number) => void,
): readonly Source[] {
  const volumeOf = (claim: PersistentVolumeClaim) => volumes.get(claim.spec?.volumeName ?? "");
  return [
    forResource(claims, {
      selects: (claim) => wantsMore(claim) || (rules.notesOldSize && hasNote(volumeOf(claim))),
      // Updates wake through the next source, which may have to delay them.
      changed: () => false,
      deleted: "forget",
    }),
    source((wake) =>
      claims.onChange({
        updated: (before, after) => {
          const mayEndNote = rules.notesOldSize && capacityOf(before) !== capacityOf(after);
          if (!mayEndNote && !shouldLook(before, after)) return;
          if (volumeOf(after)?.spec?.csi) wake(keyOf(after));
          else wakeAfter(keyOf(after), HAND_OVER_MS);
        },
        deleted: (claim) => memory.forget(claim.metadata.uid),
      }),
    ),
    // A volume that is bound, or known, only after its claim asked for more.
    arrivals(
      volumes,
      (volume) => keysOfWaiting(claims, volume),
      (before, after) => before.spec?.claimRef?.uid !== after.spec?.claimRef?.uid,
    ),
  ];
}

/** The claim that the volume is bound to, if it asks for more. */
function keysOfWaiting(claims: ResizeCaches["claims"], volume: PersistentVolume): readonly string[] {
  const { namespace = "", name = "" } = volume.spec?.claimRef ?? {};
  const key = `${namespace}/${name}`;
  const claim = claims.get(key);
  return claim !== undefined && wantsMore(claim) ? [key] : [];
}

const hasNote = (volume: PersistentVolume | undefined) =>
  volume?.metadata?.annotations?.[preResizeCapacityAnnotation] !== undefined;

const capacityOf = (claim: PersistentVolumeClaim) => claim.status?.capacity?.storage;
