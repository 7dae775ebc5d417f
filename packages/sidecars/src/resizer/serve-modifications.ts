/** The part of the resizer that modifies volumes; it serves once the cluster has VolumeAttributesClasses. */
import {
  type ComponentScope,
  type EventRecorder,
  forResource,
  type Informer,
  keyOf,
  type PersistentVolumeClaim,
  resources,
  type Source,
  source,
  startController,
  type VolumeAttributesClass,
} from "@longshore/kube";
import type { BackoffPolicy } from "@longshore/runtime";
import { arrivals } from "../common/arrivals.ts";
import { cachedAttributesClasses } from "../common/caches.ts";
import { whenServed } from "../common/served-kinds.ts";
import type { SidecarContext } from "../common/sidecar.ts";
import { ClaimMemory } from "./claim-memory.ts";
import type { ModifyContext } from "./modify-context.ts";
import { progressOf, shouldLookAtAttributes, wantsOther } from "./modify-goal.ts";
import { modifySteps } from "./modify-steps.ts";
import type { ResizeCaches } from "./resize-sources.ts";

/** What an administrator does where the kind is missing. */
const kindRemedy = "nothing, unless volumes are to be modified: Kubernetes has it by default from 1.34 on";

/** How volumes are modified. */
export interface ModifierSettings {
  readonly workers: number;
  readonly backoff: BackoffPolicy;
  /** Every claim is looked at again after this time, in milliseconds. */
  readonly resyncMs: number;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** The driver receives the names of claim and volume. */
  readonly extraMetadata: boolean;
}

/** Serves the claims that name another class than is in force. */
export function serveModifications(
  { env, driver, informers, events }: SidecarContext & { readonly events: EventRecorder },
  caches: ResizeCaches,
  { timeoutMs, extraMetadata, ...pace }: ModifierSettings,
  scope: ComponentScope,
): void {
  scope.spawn(async (signal) => {
    await whenServed(env, [resources.volumeAttributesClasses], kindRemedy, signal);
    const classes = cachedAttributesClasses(informers);
    const rules = { infeasibleRetryMs: pace.backoff.maximumMs, extraMetadata };
    const memory = new ClaimMemory();
    const context: ModifyContext = { ...caches, env, driver, events, classes, memory, timeoutMs, rules };
    const controller = startController(env, {
      name: "resizer-attributes",
      ...pace,
      sources: modifySources(context, caches.claims, classes),
      caches: [caches.volumes],
      ...modifySteps(context),
    });
    scope.own(controller);
  });
}

/** Which changes wake the attributes of a claim. */
function modifySources(
  { memory }: Pick<ModifyContext, "memory">,
  claims: Informer<PersistentVolumeClaim>,
  classes: Informer<VolumeAttributesClass>,
): readonly Source[] {
  claims.addIndex(indexName, byAttributesClass);
  return [
    forResource(claims, { selects: wantsOther, changed: shouldLookAtAttributes, deleted: "forget" }),
    source(() => claims.onChange({ deleted: (claim) => memory.forget(claim.metadata.uid) })),
    // A class that is made only after a claim has named it.
    arrivals(classes, ({ metadata }) => claims.byIndex(indexName, metadata.name).map(keyOf)),
  ];
}

/** Claims by the classes that they name, or that are under way, while these are to be applied. */
const indexName = "byAttributesClass";

const byAttributesClass = (claim: PersistentVolumeClaim): readonly string[] => {
  if (!wantsOther(claim)) return [];
  const named = [claim.spec?.volumeAttributesClassName ?? "", progressOf(claim).target];
  return [...new Set(named)].filter((name) => name !== "");
};
