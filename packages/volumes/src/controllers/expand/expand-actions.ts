/** The actions of the expand controller, one for each step. Source: docs/behaviour/controllers.md Part C. */
import {
  type Actions,
  type EventRecorder,
  type KubeEnv,
  type Next,
  type Patch,
  type PersistentVolumeClaim,
  parseQuantity,
  refOf,
  resources,
  type Stored,
  settled,
} from "@longshore/kube";
import { withDeadline } from "@longshore/runtime";
import { storageResizerAnnotation } from "@longshore/storage";
import { specOfPersistentVolume } from "../../framework/volume-spec.ts";
import { storageOperations } from "../../metrics/storage-operations.ts";
import type { ExpandObservation, ExpandStep } from "./decide-expand-step.ts";

/** Most time of one call that grows a device, in milliseconds; a pass has more, so that it can report what took longer. */
export const expandTimeoutMs = 120_000;

type ExpandActions = Actions<ExpandObservation, ExpandStep>;
type ExpandAction<Name extends keyof ExpandActions> = ExpandActions[Name];

/** The actions over these seams. */
export function expandActions(env: KubeEnv, events: Pick<EventRecorder, "event">): ExpandActions {
  return {
    report: report(events),
    annotateResizer: annotateResizer(env),
    markResizing: markResizing(env),
    expandDevice: expandDevice(env),
    storeCapacity: storeCapacity(env),
    markFileSystemResizePending: markFileSystemResizePending(env),
    storeClaimCapacity: storeClaimCapacity(env),
    fail({ error }) {
      throw error;
    },
    refuse({ message }) {
      throw new Error(message);
    },
    settle: () => settled,
  };
}

function report(events: Pick<EventRecorder, "event">): ExpandAction<"report"> {
  return ({ type, reason, message }, observed) => {
    const subject = { ...observed.claim, apiVersion: "v1", kind: "PersistentVolumeClaim" };
    events.event(subject, type, reason, message);
    return { observed: { ...observed, isReported: true } };
  };
}

function annotateResizer(env: KubeEnv): ExpandAction<"annotateResizer"> {
  return async ({ resizer }, observed, { signal }) => {
    try {
      const patch = resizerPatch(observed.claim, resizer);
      return { observed: { ...observed, claim: await patchStatus(env, observed.claim, patch, signal) } };
    } catch (error) {
      return failed(observed, error);
    }
  };
}

function markResizing(env: KubeEnv): ExpandAction<"markResizing"> {
  return async ({ resizer, conditions }, observed, { signal }) => {
    const patch = resizerPatch(observed.claim, resizer, { conditions });
    const claim = await patchStatus(env, observed.claim, patch, signal);
    return { observed: { ...observed, claim, isMarked: true } };
  };
}

/** Asks the plugin for at least `to`; the same call again finds the device grown. */
function expandDevice(env: KubeEnv): ExpandAction<"expandDevice"> {
  const measured = storageOperations(env);
  return async ({ from, to }, observed, { signal }) => {
    const { volume, expander } = observed;
    if (volume === undefined || expander.kind !== "in-tree") return settled;
    try {
      const spec = specOfPersistentVolume(volume, false);
      const { pluginName: plugin } = expander.plugin;
      const bytes = await measured.measure("expand_volume", { plugin, isMigrated: false }, signal, () =>
        withDeadline(env.clock, expandTimeoutMs, signal, (limited) =>
          expander.plugin.expandVolumeDevice(spec, to.toBytes(), from.toBytes(), limited),
        ),
      );
      // An exact size keeps the form that the claim has it in: 10Gi, not 10737418240.
      const size = bytes === to.toBytes() ? to : parseQuantity(bytes.toString());
      return { observed: { ...observed, grownTo: size.toString() } };
    } catch (error) {
      return failed(observed, error);
    }
  };
}

function storeCapacity(env: KubeEnv): ExpandAction<"storeCapacity"> {
  return async ({ storage }, observed, { signal }) => {
    if (observed.volume === undefined) return settled;
    // With the UID the patch fails on another volume of the same name.
    const body = { metadata: { uid: observed.volume.metadata.uid }, spec: { capacity: { storage } } };
    const ref = refOf(observed.volume);
    const volume = await env.kube.patch(
      resources.persistentVolumes,
      ref,
      { type: "merge", body },
      { signal },
    );
    return { observed: { ...observed, volume } };
  };
}

function markFileSystemResizePending(env: KubeEnv): ExpandAction<"markFileSystemResizePending"> {
  return async ({ conditions }, { claim }, { signal }) => {
    await patchStatus(env, claim, mergeBody(claim, { conditions }), signal);
    return settled;
  };
}

function storeClaimCapacity(env: KubeEnv): ExpandAction<"storeClaimCapacity"> {
  return async ({ storage, conditions }, observed, { signal }) => {
    const { claim } = observed;
    const status = { conditions, capacity: { ...claim.status?.capacity, storage } };
    const stored = await patchStatus(env, claim, mergeBody(claim, status), signal);
    return { observed: { ...observed, claim: stored, isFinished: true } };
  };
}

/** Names who expands, and sets conditions, in one patch; a change of the claim in between makes it fail. */
function resizerPatch(claim: Stored<PersistentVolumeClaim>, resizer: string, status?: object): Patch {
  const { resourceVersion } = claim.metadata;
  const metadata = { resourceVersion, annotations: { [storageResizerAnnotation]: resizer } };
  return { type: "strategic", body: { metadata, ...(status === undefined ? {} : { status }) } };
}

function mergeBody(claim: Stored<PersistentVolumeClaim>, status: object): Patch {
  const { resourceVersion } = claim.metadata;
  return { type: "merge", body: { metadata: { resourceVersion }, status } };
}

function patchStatus(
  env: KubeEnv,
  claim: Stored<PersistentVolumeClaim>,
  patch: Patch,
  signal: AbortSignal,
): Promise<Stored<PersistentVolumeClaim>> {
  const options = { signal, subresource: "status" } as const;
  return env.kube.patch(resources.persistentVolumeClaims, refOf(claim), patch, options);
}

/** An event names what failed before the pass ends with it. */
function failed(observed: ExpandObservation, error: unknown): Next<ExpandObservation> {
  return { observed: { ...observed, failure: { error }, isReported: false } };
}
