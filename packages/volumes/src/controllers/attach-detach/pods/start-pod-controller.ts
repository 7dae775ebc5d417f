/**
 * Keeps the desired state: key is a pod, what comes of it are the volumes that it wants attached.
 * Source: docs/behaviour/controllers.md A3.
 */
import {
  type Actions,
  type Controller,
  keyOf,
  observeAgain,
  type Pod,
  type QueueEnv,
  type Stored,
  settled,
  startController,
} from "@longshore/kube";
import { backoffMs } from "@longshore/runtime";
import { operationBackoff } from "../../../framework/operation-backoff.ts";
import { type AttachDetachContext, wakeUnwanted, wakeWanted } from "../attach-detach-context.ts";
import type { DesiredPod, WantedVolume } from "../desired-state.ts";
import { decidePod, type PodStep } from "./decide-pod.ts";
import { type ObservedPod, observePod } from "./observe-pod.ts";
import { podSources } from "./pod-sources.ts";
import { readCsiNode } from "./read-csi-node.ts";

/** Pods are decided by this many at a time. */
const workers = 16;

/** Starts it. The caches have synced, and every pod in them is marked pending. */
export function startPodController(env: QueueEnv, context: AttachDetachContext): Controller {
  return startController<ObservedPod, PodStep>(env, {
    name: "attach_detach_pods",
    workers,
    sources: podSources(context),
    observe: (key) => observePod(context, key),
    decide: decidePod,
    actions: podActions(context),
  });
}

function podActions(context: AttachDetachContext): Actions<ObservedPod, PodStep> {
  /** Failed decisions in a row of pods with undecided volumes. */
  const failures = new Map<string, number>();
  const setPod = (key: string, observed: ObservedPod, desired: DesiredPod | undefined) => {
    const before = context.desired.pod(key);
    // Before the pod is decided: without a pending pod, disks of the node are detached by the desired state.
    context.desired.setPod(key, desired);
    const node = context.pending.decided(key, observed.marks);
    wakeDisks(context, before, desired);
    if (node !== undefined) wakeUnwanted(context, node);
  };
  return {
    forget(_step, observed, { key }) {
      if (context.pending.marksOf(key) !== observed.marks) return observeAgain;
      failures.delete(key);
      setPod(key, observed, undefined);
      return settled;
    },
    async readCsiNode({ nodeName }, observed, { signal }) {
      return { observed: { ...observed, live: await readCsiNode(context, nodeName, signal) } };
    },
    report({ pod, problems }, observed) {
      for (const problem of problems) reportProblem(context, pod, problem);
      return { observed: { ...observed, isReported: true } };
    },
    want({ desired, retries }, observed, { key }) {
      // A change came while the API server was asked: what is desired is never older than the caches.
      if (context.pending.marksOf(key) !== observed.marks) return observeAgain;
      setPod(key, observed, desired);
      for (const volume of desired.volumes) {
        if (volume.kind !== "wanted") continue;
        const attachment = context.actual.get(desired.nodeName, volume.uniqueName);
        // A recovered attachment takes the spec that a pod brings.
        if (attachment !== undefined) attachment.spec ??= volume.spec;
        wakeUnidentified(context, desired.nodeName, volume);
      }
      if (!retries) {
        failures.delete(key);
        return settled;
      }
      const failed = (failures.get(key) ?? 0) + 1;
      failures.set(key, failed);
      return { requeueAfterMs: backoffMs(operationBackoff, failed) };
    },
  };
}

/** Logs the problem and emits an event of the pod; as in Kubernetes 1.20, compat only logs. */
function reportProblem(
  context: AttachDetachContext,
  pod: Stored<Pod>,
  problem: Extract<PodStep, { step: "report" }>["problems"][number],
): void {
  const { podVolumeName, label, message } = problem;
  context.env.logger.warn(`error performing CSI migration checks and translation for ${label}: ${message}`, {
    pod: keyOf(pod),
  });
  if (context.settings.compat) return;
  context.events.event(
    { apiVersion: "v1", kind: "Pod", ...pod },
    "Warning",
    "FailedAttachVolume",
    `Volume "${podVolumeName}" is not attached: ${message}`,
  );
}

/** What is attached under the volume's in-tree name, where that says too little: its pass identifies it now. */
function wakeUnidentified(
  { actual, wakeDisk }: AttachDetachContext,
  nodeName: string,
  volume: WantedVolume,
): void {
  const { inTreeName, identity } = volume;
  const named = inTreeName === undefined ? undefined : actual.get(nodeName, inTreeName);
  if (named !== undefined && named.identity !== identity) wakeDisk(named.identity);
}

/**
 * The disks that the pod wanted or wants, but for those that a pod which is new here wants and has; where it could have meant any
 * disk of the node, all of those.
 */
function wakeDisks(
  context: AttachDetachContext,
  before: DesiredPod | undefined,
  after: DesiredPod | undefined,
): void {
  for (const { identity } of before?.volumes ?? []) if (identity !== undefined) context.wakeDisk(identity);
  for (const volume of after?.volumes ?? []) {
    if (before === undefined && volume.kind === "wanted") wakeWanted(context, after?.nodeName ?? "", volume);
    else if (volume.identity !== undefined) context.wakeDisk(volume.identity);
  }
  if (before?.volumes.some(({ kind }) => kind === "undecided") === true) {
    wakeUnwanted(context, before.nodeName);
  }
}
