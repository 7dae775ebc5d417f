/** Preflight of pods: those that a drain leaves, loses or waits for, and the driver's own. Pure. */
import { type Event, isPodTerminal, type Pod, type Stored } from "@longshore/kube";
import type { Finding, PreflightView } from "./finding.ts";
import { isReady, leftByDrain, nameOf, usesPluginOrDriver, type VolumeIndex } from "./pod-facts.ts";

/** What takes longer than this, in milliseconds, is stuck. */
export const stuckAfterMs = 5 * 60_000;
/** What happened longer ago than this, in milliseconds, says nothing of now. */
const recentMs = 10 * 60_000;

const volumeFailures: readonly string[] = [
  "FailedMount",
  "FailedAttachVolume",
  "FailedMapVolume",
  "FailedDetachVolume",
  "FailedUnMount",
];

/** Problems of the pods that block or delay a crossing. */
export function podFindings(view: PreflightView, volumes: VolumeIndex, force: boolean): Finding[] {
  const failures = failuresByPod(view.seen.events, view.seen.now);
  return view.seen.pods.flatMap((pod) => {
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || isPodTerminal(pod)) return [];
    const kept = leftByDrain(pod);
    if (kept !== undefined) {
      return usesPluginOrDriver(view.subject, pod, volumes) ? [notDrained(view, pod, kept)] : [];
    }
    const lost = isManaged(pod) || force ? [] : [wouldBeLost(pod)];
    if (!view.toCross.has(nodeName)) return lost;
    return [...lost, ...(stuck(pod, failures.get(pod.metadata.uid), view.seen.now) ?? pinned(pod, volumes))];
  });
}

function notDrained({ subject }: PreflightView, pod: Stored<Pod>, kind: string): Finding {
  return {
    severity: "blocker",
    object: `Pod ${nameOf(pod)}`,
    reason: `a ${kind} pod on node ${pod.spec?.nodeName} uses a volume of ${subject.inTreeName} or ${subject.driverName}, and a drain leaves it`,
    remedy: "move its volume to another pod, or delete the workload for the time of the crossing",
  };
}

function isManaged(pod: Pod): boolean {
  return pod.metadata?.ownerReferences?.some((o) => o.controller === true) === true;
}

/** Whatever its volumes: a drain takes every pod of the node. */
function wouldBeLost(pod: Stored<Pod>): Finding {
  return {
    severity: "blocker",
    object: `Pod ${nameOf(pod)}`,
    field: "metadata.ownerReferences",
    reason: "it has no controller: evicted from its node, it would not come back",
    remedy: "run it under a controller, delete it, or pass `force` to let it go",
  };
}

/** A pod that does not come to run, or does not end. */
function stuck(pod: Stored<Pod>, failure: Stored<Event> | undefined, now: Date): Finding[] | undefined {
  const object = `Pod ${nameOf(pod)}`;
  const ends = pod.metadata.deletionTimestamp;
  if (ends !== undefined) {
    const lateMs = now.getTime() - Date.parse(ends);
    if (lateMs < stuckAfterMs && failure === undefined) return undefined;
    const finalizers = pod.metadata.finalizers ?? [];
    const held = finalizers.length === 0 ? "" : `; metadata.finalizers has ${finalizers.join(", ")}`;
    return [
      {
        severity: lateMs < stuckAfterMs ? "warning" : "blocker",
        object,
        field: "metadata.deletionTimestamp",
        reason: `it should have ended at ${ends}${held}${failureWords(failure)}`,
        remedy: `see the agent of node ${pod.spec?.nodeName} and the owners of the finalizers; a drain waits until it is gone`,
      },
    ];
  }
  if (isReady(pod) || pod.status?.phase !== "Pending") return undefined;
  const bound = pod.status.conditions?.find((c) => c.type === "PodScheduled")?.lastTransitionTime;
  const since = bound ?? pod.metadata.creationTimestamp;
  const waitsMs = since === undefined ? 0 : now.getTime() - Date.parse(since);
  if (failure === undefined && waitsMs < stuckAfterMs) return undefined;
  return [
    {
      severity: "warning",
      object,
      field: "status.phase",
      reason: `it is on node ${pod.spec?.nodeName} and does not come to run${since === undefined ? "" : ` since ${since}`}${failureWords(failure)}`,
      remedy: "correct its volumes first: after the crossing the cause is harder to find",
    },
  ];
}

function failureWords(failure: Stored<Event> | undefined): string {
  return failure === undefined ? "" : `; ${failure.reason}: ${failure.message ?? ""}`;
}

/** The last recent failure of a volume, by the pod's UID. */
function failuresByPod(events: readonly Stored<Event>[], now: Date): Map<string, Stored<Event>> {
  const found = new Map<string, Stored<Event>>();
  const recent = events.filter(
    (event) => volumeFailures.includes(event.reason ?? "") && now.getTime() - timeOf(event) < recentMs,
  );
  // Oldest first: of several failures the newest stays in the map.
  for (const event of recent.sort((a, b) => timeOf(a) - timeOf(b))) {
    if (event.involvedObject.uid !== undefined) found.set(event.involvedObject.uid, event);
  }
  return found;
}

/** Both API generations of events are in use, each with fields of its own. */
function timeOf(event: Stored<Event>): number {
  const { series, lastTimestamp, eventTime, firstTimestamp, metadata } = event;
  const text =
    series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? firstTimestamp ?? metadata.creationTimestamp;
  return Date.parse(text ?? "");
}

const hostname = "kubernetes.io/hostname";

/** A pod that can run on its node only is down for as long as the node is cordoned. */
function pinned(pod: Stored<Pod>, volumes: VolumeIndex): Finding[] {
  const field = pinnedBy(pod);
  const local = field === undefined ? volumes.boundTo(pod).find(isOnOneNode) : undefined;
  if (field === undefined && local === undefined) return [];
  return [
    {
      severity: "warning",
      object: `Pod ${nameOf(pod)}`,
      field: field ?? "spec.volumes",
      reason: `it can run on node ${pod.spec?.nodeName} only${local === undefined ? "" : `, where PersistentVolume ${local.metadata.name} is`}: it is down from the drain until the node is uncordoned`,
      remedy: "let it run elsewhere, or accept the pause",
    },
  ];
}

function pinnedBy(pod: Pod): string | undefined {
  if (pod.spec?.nodeSelector?.[hostname] !== undefined) return `spec.nodeSelector[${hostname}]`;
  const terms =
    pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.length > 0 && terms.every(namesOneNode) ? "spec.affinity.nodeAffinity" : undefined;
}

interface NodeTerm {
  readonly matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
  readonly matchFields?: readonly { key: string; operator: string; values?: readonly string[] }[];
}

function namesOneNode({ matchExpressions = [], matchFields = [] }: NodeTerm): boolean {
  return [...matchExpressions, ...matchFields].some(
    ({ key, operator, values }) =>
      (key === hostname || key === "metadata.name") && operator === "In" && values?.length === 1,
  );
}

function isOnOneNode(pv: Stored): boolean {
  const spec = (pv as { spec?: { nodeAffinity?: { required?: { nodeSelectorTerms?: NodeTerm[] } } } }).spec;
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return terms.length > 0 && terms.every(namesOneNode);
}

/** The driver's pods on nodes, known by the plugin directory that they mount from there. */
export function driverPodFindings({ subject, direction, seen, toCross }: PreflightView): Finding[] {
  if (direction === "rollback") return [];
  const directory = new RegExp(`/plugins/${subject.driverName.replaceAll(".", "\\.")}(/|$)`);
  return seen.pods
    .filter((pod) => toCross.has(pod.spec?.nodeName ?? "") && !isPodTerminal(pod))
    .filter((pod) => pod.spec?.volumes?.some((volume) => directory.test(volume.hostPath?.path ?? "")))
    .flatMap((pod) => driverPodProblem(pod, seen.now) ?? []);
}

function driverPodProblem(pod: Stored<Pod>, now: Date): Finding | undefined {
  const object = `Pod ${nameOf(pod)}`;
  const what = `the driver's pod on node ${pod.spec?.nodeName}`;
  const statuses = pod.status?.containerStatuses ?? [];
  if (!isReady(pod)) {
    const waiting = statuses.find((s) => s.state?.waiting?.reason !== undefined);
    const why =
      waiting === undefined ? "" : ` (container ${waiting.name}: ${waiting.state?.waiting?.reason})`;
    const field = "status.conditions[Ready]";
    const remedy = "see the pod's events and logs, and wait until it is ready";
    return { severity: "blocker", object, field, reason: `${what} is not ready${why}`, remedy };
  }
  const restarted = statuses.find((s) => {
    const ended = s.lastState?.terminated?.finishedAt;
    return s.restartCount > 0 && ended !== undefined && now.getTime() - Date.parse(ended) < recentMs;
  });
  if (restarted === undefined) return undefined;
  const ended = restarted.lastState?.terminated;
  return {
    severity: "warning",
    object,
    field: "status.containerStatuses[].restartCount",
    reason: `${what} has restarted lately: container ${restarted.name} ${restarted.restartCount} times, last at ${ended?.finishedAt} (${ended?.reason ?? `exit code ${ended?.exitCode}`})`,
    remedy: "see the container's previous log before going on",
  };
}
