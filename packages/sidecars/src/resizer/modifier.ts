/** The part of the resizer that modifies volumes; it serves once the cluster has VolumeAttributesClasses. */
import { keyOf, resources, startWorkQueue } from "@longshore/kube";
import { cachedAttributesClasses, cachedClaims, resync } from "../common/caches.ts";
import { whenServed } from "../common/served-kinds.ts";
import type { SidecarContext, SidecarScope } from "../common/sidecar.ts";
import { ClaimMemory } from "./claim-memory.ts";
import { type ModifyContext, reconcileAttributes } from "./modify-reconciler.ts";
import { progressOf, shouldLookAtAttributes, wantsOther } from "./modify-step.ts";

/** What an administrator does where the kind is missing. */
const kindRemedy = "nothing, unless volumes are to be modified: Kubernetes has it by default from 1.34 on";

/** The modifier's settings, in addition to those of the sidecar. */
export interface ModifierSettings extends Omit<ModifyContext, "classes" | "memory" | "driver"> {
  readonly workers: number;
  readonly backoff: { readonly initialMs: number; readonly maximumMs: number };
  readonly resyncMs: number;
}

/** Serves the claims that name another class than is in force. */
export function serveModifications(
  sidecar: SidecarContext,
  settings: ModifierSettings,
  scope: SidecarScope,
): void {
  const { env } = settings;
  scope.spawn(async (signal) => {
    await whenServed(env, [resources.volumeAttributesClasses], kindRemedy, signal);
    await begin(sidecar, settings, scope, signal);
  });
}

async function begin(
  { driver, informers }: SidecarContext,
  settings: ModifierSettings,
  scope: SidecarScope,
  signal: AbortSignal,
): Promise<void> {
  const { env, workers, backoff, resyncMs } = settings;
  const classes = cachedAttributesClasses(informers);
  await classes.synced(signal);
  const claims = cachedClaims(informers);
  const memory = new ClaimMemory();
  const context: ModifyContext = { ...settings, driver, classes, memory };
  const queue = startWorkQueue(env, {
    name: "resizer-attributes",
    workers,
    backoff,
    reconcile: (key, passSignal) => reconcileAttributes(context, key, passSignal),
  });
  scope.own(queue);
  resync(env, scope, claims, resyncMs, (claim) => {
    if (wantsOther(claim)) queue.add(keyOf(claim), "background");
  });
  scope.onStop(
    claims.onChange({
      added: (claim, { initial }) => {
        if (wantsOther(claim)) queue.add(keyOf(claim), initial ? "background" : "fresh");
      },
      updated: (before, after) => {
        if (shouldLookAtAttributes(before, after)) queue.add(keyOf(after));
      },
      deleted: (claim) => {
        memory.forget(claim.metadata.uid);
        queue.forget(keyOf(claim));
      },
    }),
    classes.onChange({
      added: ({ metadata: { name } }, { initial }) => {
        if (initial) return; // The claims themselves are queued at the start anyway.
        for (const claim of claims.list()) {
          const named = [claim.spec?.volumeAttributesClassName, progressOf(claim).target];
          if (named.includes(name) && wantsOther(claim)) queue.add(keyOf(claim));
        }
      },
    }),
  );
}
