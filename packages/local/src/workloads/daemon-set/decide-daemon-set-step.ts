/**
 * What the DaemonSet controller does next: one pod on each node that the template selects. Pure. Source: apps/v1 DaemonSet;
 * kubernetes pkg/controller/daemon. A pod is bound to its node by node affinity, through the scheduler. Different: `maxSurge`
 * has no effect (an old pod goes before the new one comes), and no ControllerRevisions are kept.
 */
import { type DaemonSet, isDeleting, isPodTerminal, type Node, type Pod, type Stored } from "@longshore/kube";
import { isPodReady } from "../is-pod-ready.ts";
import { matchesNodeSelector, tolerates } from "../node-fit.ts";
import { adoptable, claimObjects, controllerReference, type Owner } from "../pod-sets/claim-pods.ts";
import { availability, availableInMs } from "../pod-sets/pod-availability.ts";
import { podFromTemplate, revisionLabel, templateHash } from "../pod-sets/pod-from-template.ts";
import type { PlannedObservation, PodSetStep } from "../pod-sets/pod-set-steps.ts";

/** What the controller sees of a set. */
export interface ObservedDaemonSet extends PlannedObservation {
  readonly set: Stored<DaemonSet>;
  readonly pods: readonly Stored<Pod>[];
  /** Pods of its namespace that nothing controls. */
  readonly orphans: readonly Stored<Pod>[];
  readonly nodes: readonly Stored<Node>[];
  readonly now: Date;
}

type DaemonSetStatus = NonNullable<DaemonSet["status"]>;

/** One action of the controller. */
export type DaemonSetStep =
  | PodSetStep
  | { readonly step: "reportStatus"; readonly status: DaemonSetStatus; readonly nextMs: number | undefined }
  | { readonly step: "settle"; readonly nextMs: number | undefined };

/** What the pods of every DaemonSet tolerate: they are where others may not be. */
const daemonTolerations = [
  { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/disk-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/pid-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/unschedulable", operator: "Exists", effect: "NoSchedule" },
];

/** The set as an owner of pods. */
export function ownerOfDaemonSet(set: Stored<DaemonSet>): Owner {
  const { name, uid } = set.metadata;
  const selector = set.spec?.selector;
  return { apiVersion: "apps/v1", kind: "DaemonSet", name, uid, selector, isDeleting: isDeleting(set) };
}

/** Decides on the next step: the plan's, then the report of what was seen when the pass began. */
export function decideDaemonSetStep(observed: ObservedDaemonSet): DaemonSetStep {
  const { set, pods, orphans, nodes, done, now } = observed;
  const owner = ownerOfDaemonSet(set);
  const claimed = claimObjects(owner, pods, adoptable(orphans));
  const view = viewOf(set, owner, claimed.owned, nodes);
  const step = owner.isDeleting ? undefined : stepsOf(set, owner, claimed, view, now)[done];
  if (step !== undefined) return step;
  const { status, nextMs } = statusOf(set, view, now);
  const isReported = (Object.keys(status) as (keyof typeof status)[]).every(
    (count) => (set.status?.[count] ?? 0) === status[count],
  );
  return isReported ? { step: "settle", nextMs } : { step: "reportStatus", status, nextMs };
}

/** The pods by their nodes, and where there are to be some. */
interface View {
  readonly wanted: readonly Stored<Node>[];
  readonly byNode: ReadonlyMap<string, readonly Stored<Pod>[]>;
  readonly hash: string;
}

function viewOf(
  set: Stored<DaemonSet>,
  owner: Owner,
  owned: readonly Stored<Pod>[],
  nodes: readonly Stored<Node>[],
): View {
  const byNode = new Map<string, Stored<Pod>[]>();
  for (const pod of owned) {
    const name = nodeOf(pod);
    const there = byNode.get(name);
    if (there === undefined) byNode.set(name, [pod]);
    else there.push(pod);
  }
  const model = podFor(set, owner, undefined);
  return {
    wanted: nodes.filter((node) => mayRunOn(model, node)),
    byNode,
    hash: templateHash(set.spec?.template),
  };
}

/** The node of the pod, or that for which it was made. */
function nodeOf({ spec }: Pod): string {
  if (spec?.nodeName !== undefined) return spec.nodeName;
  const terms =
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms?.[0]?.matchFields?.find(({ key }) => key === "metadata.name")?.values?.[0] ?? "";
}

function mayRunOn(pod: Pod, node: Stored<Node>): boolean {
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect !== "PreferNoSchedule");
  return matchesNodeSelector(pod, node) && taints.every((taint) => tolerates(pod, taint));
}

/** The pod for a node; without one, the pod before it is given a node. */
function podFor(set: Stored<DaemonSet>, owner: Owner, nodeName: string | undefined): Pod {
  const namespace = set.metadata.namespace ?? "default";
  const labels = { [revisionLabel]: templateHash(set.spec?.template) };
  const pod = podFromTemplate({ owner, namespace, template: set.spec?.template, labels });
  const spec = pod.spec ?? { containers: [] };
  const tolerations = [...(spec.tolerations ?? []), ...daemonTolerations];
  if (nodeName === undefined) return { ...pod, spec: { ...spec, tolerations } };
  // Takes the place of the selector's terms, which the node meets.
  const matchFields = [{ key: "metadata.name", operator: "In", values: [nodeName] }];
  const required = { nodeSelectorTerms: [{ matchFields }] };
  const nodeAffinity = {
    ...spec.affinity?.nodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution: required,
  };
  return { ...pod, spec: { ...spec, tolerations, affinity: { ...spec.affinity, nodeAffinity } } };
}

function stepsOf(
  set: Stored<DaemonSet>,
  owner: Owner,
  { adopt, release }: ReturnType<typeof claimObjects<Pod>>,
  view: View,
  now: Date,
): PodSetStep[] {
  const reference = controllerReference(owner);
  const wanted = new Set(view.wanted.map(({ metadata }) => metadata.name));
  const steps: PodSetStep[] = [
    ...adopt.map((pod): PodSetStep => ({ step: "adoptPod", pod, reference })),
    ...release.map((pod): PodSetStep => ({ step: "releasePod", pod, ownerUID: owner.uid })),
  ];
  const remove = (pod: Stored<Pod>) => {
    if (!isDeleting(pod)) steps.push({ step: "deletePod", pod });
  };
  for (const [node, pods] of view.byNode) {
    if (!wanted.has(node)) for (const pod of pods) remove(pod);
  }
  for (const node of wanted) {
    const pods = view.byNode.get(node) ?? [];
    for (const pod of pods) if (isPodTerminal(pod)) remove(pod);
    const live = pods.filter((pod) => !isPodTerminal(pod));
    const [, ...surplus] = oldestFirst(live.filter((pod) => !isDeleting(pod)));
    for (const pod of surplus) remove(pod);
    // While one that is being deleted may run, there is no other.
    if (pods.length === 0) steps.push({ step: "createPod", pod: podFor(set, owner, node) });
  }
  for (const pod of outdated(set, view, now)) remove(pod);
  return steps;
}

function oldestFirst(pods: readonly Stored<Pod>[]): readonly Stored<Pod>[] {
  const age = (pod: Stored<Pod>) => Date.parse(pod.metadata.creationTimestamp ?? "");
  return [...pods].sort((a, b) => age(a) - age(b));
}

/** Pods of an earlier template that may go now: those that serve nothing first, as many as may be missing. */
function outdated(set: Stored<DaemonSet>, { wanted, byNode, hash }: View, now: Date): readonly Stored<Pod>[] {
  if (set.spec?.updateStrategy?.type === "OnDelete") return [];
  const minReady = set.spec?.minReadySeconds ?? 0;
  const limit = set.spec?.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1;
  const most =
    typeof limit === "number" ? limit : Math.ceil((Number.parseInt(limit, 10) * wanted.length) / 100);
  const old: { readonly pod: Stored<Pod>; readonly isAvailable: boolean }[] = [];
  let missing = 0;
  for (const { metadata } of wanted) {
    const pod = (byNode.get(metadata.name) ?? []).find((one) => !isDeleting(one) && !isPodTerminal(one));
    const isAvailable = pod !== undefined && (availableInMs(pod, minReady, now) ?? 1) <= 0;
    const isOld = pod !== undefined && pod.metadata.labels?.[revisionLabel] !== hash;
    if (!isAvailable && !isOld) missing++;
    if (isOld) old.push({ pod, isAvailable });
  }
  const idle = old.filter(({ isAvailable }) => !isAvailable);
  const serving = old.filter(({ isAvailable }) => isAvailable);
  const room = Math.max(0, Math.max(1, most) - missing - idle.length);
  return [...idle, ...serving.slice(0, room)].map(({ pod }) => pod);
}

function statusOf(set: Stored<DaemonSet>, { wanted, byNode, hash }: View, now: Date) {
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  const pods = [...names]
    .map((name) => oldestFirst((byNode.get(name) ?? []).filter((pod) => !isPodTerminal(pod)))[0])
    .filter((pod) => pod !== undefined);
  const { available, nextMs } = availability(pods, set.spec?.minReadySeconds ?? 0, now);
  const misplaced = [...byNode].filter(
    ([name, there]) => !names.has(name) && there.some((p) => !isPodTerminal(p)),
  );
  const status = {
    desiredNumberScheduled: names.size,
    currentNumberScheduled: pods.length,
    numberMisscheduled: misplaced.length,
    numberReady: pods.filter(isPodReady).length,
    updatedNumberScheduled: pods.filter(({ metadata }) => metadata.labels?.[revisionLabel] === hash).length,
    numberAvailable: available,
    numberUnavailable: names.size - available,
    observedGeneration: set.metadata.generation ?? 1,
  };
  return { status, nextMs };
}
