/** What each step of a crossing waits for: pure functions of what the step has observed. */
import type { Pod, PodDisruptionBudget, Stored, VolumeAttachment } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { budgetsOf, holdOf } from "./disruption-budgets.ts";
import type { GateValues } from "./platform.ts";
import type { Wait, WaitSubject } from "./wait.ts";

/** For one object. */
export function waitFor(kind: string, name: string, why: string): Wait {
  return { subjects: [{ kind, name, why }] };
}

/** For an API server that does not answer. */
export function apiServerWait(error: unknown): Wait {
  return waitFor("API server", "", `does not answer: ${errorChain(error)}`);
}

/** For gates to come into effect; on the control plane where no node is named. */
export function gatesWait(nodeName: string | undefined, values: GateValues): Wait {
  const gates = Object.entries(values).map(([name, value]) => `${name}=${value}`);
  const why = `to run with the feature gates ${gates.join(",")}`;
  return nodeName === undefined ? waitFor("control plane", "", why) : waitFor("Node", nodeName, why);
}

/** For the pods of a node to go. `refused`: by UID, in the server's words, whose eviction was refused. */
export function drainWait(
  pods: readonly Stored<Pod>[],
  refused: ReadonlyMap<string, string>,
  budgets: readonly Stored<PodDisruptionBudget>[],
  now: Date,
): Wait {
  return { subjects: pods.map((pod) => podSubject(pod, refused.get(pod.metadata.uid), budgets, now)) };
}

function podSubject(
  pod: Stored<Pod>,
  refusal: string | undefined,
  budgets: readonly Stored<PodDisruptionBudget>[],
  now: Date,
): WaitSubject {
  const { namespace = "default", name } = pod.metadata;
  const why = refusal === undefined ? whyNotEnded(pod, now) : whyNotEvicted(pod, refusal, budgets);
  return { kind: "Pod", namespace, name, why };
}

function whyNotEvicted(
  pod: Stored<Pod>,
  refusal: string,
  budgets: readonly Stored<PodDisruptionBudget>[],
): string {
  const covering = budgetsOf(pod, budgets);
  const names = covering.map((budget) => `PodDisruptionBudget ${namespacedName(budget)}`);
  if (covering.length > 1) return `it cannot be evicted: covered by ${names.join(" and ")}`;
  const [budget] = covering;
  const hold = budget === undefined ? undefined : holdOf(budget);
  return hold === undefined ? `its eviction is refused: ${refusal}` : `${names[0]}: ${hold.reason}`;
}

function whyNotEnded(pod: Stored<Pod>, now: Date): string {
  const ends = pod.metadata.deletionTimestamp;
  if (ends === undefined) return "evicted, to end";
  if (now.getTime() <= Date.parse(ends)) return `to end, by ${ends} at the latest`;
  const finalizers = pod.metadata.finalizers ?? [];
  return finalizers.length > 0
    ? `should have ended at ${ends}; metadata.finalizers still has ${finalizers.join(", ")}`
    : `should have ended at ${ends}; the agent of node ${pod.spec?.nodeName ?? ""} has not ended it`;
}

/** For what is in use or attached on a node (`left`, in the words of `volumesLeft`) to go. */
export function volumesWait(
  nodeName: string,
  left: readonly string[],
  attachments: readonly Stored<VolumeAttachment>[],
): Wait {
  const byText = new Map(attachments.map((va) => [`VolumeAttachment ${va.metadata.name}`, va]));
  return {
    subjects: left.map((text) => {
      const va = byText.get(text);
      return va === undefined
        ? { kind: "Node", name: nodeName, why: `${text}` }
        : { kind: "VolumeAttachment", name: va.metadata.name, why: whyNotDetached(va) };
    }),
  };
}

function whyNotDetached(va: Stored<VolumeAttachment>): string {
  const error = va.status?.detachError?.message;
  if (error !== undefined) return `status.detachError: ${error}`;
  const since = va.metadata.deletionTimestamp;
  return since === undefined ? "not asked to detach yet" : `detaching since ${since}`;
}

function namespacedName({ metadata }: Stored): string {
  return `${metadata.namespace ?? "default"}/${metadata.name}`;
}
