/**
 * How a Deployment moves from its old ReplicaSets to the new one: pure functions of replicas and availability. Source:
 * apps/v1 Deployment; kubernetes pkg/controller/deployment rolling.go, recreate.go, sync.go. Different: while a rollout is
 * under way, a change of `replicas` goes to the new ReplicaSet as room permits, not to all of them in proportion.
 */
import { type Deployment, isDeleting, type Pod, type ReplicaSet, type Stored } from "@longshore/kube";
import type { Owner } from "../pod-sets/claim-pods.ts";
import { canonicalText } from "../pod-sets/pod-from-template.ts";

/** The label that distinguishes the pods of a Deployment's ReplicaSets. */
export const hashLabel = "pod-template-hash";
/** Number of the rollout; `kubectl rollout history` shows it. */
export const revisionAnnotation = "deployment.kubernetes.io/revision";

/** A ReplicaSet that is to have another size. */
export interface Scaling {
  readonly set: Stored<ReplicaSet>;
  readonly replicas: number;
}

/** The ReplicaSets of a Deployment. */
export interface Rollout {
  readonly deployment: Stored<Deployment>;
  /** The one with the template of the Deployment. */
  readonly current: Stored<ReplicaSet> | undefined;
  /** All others, the oldest first. */
  readonly old: readonly Stored<ReplicaSet>[];
}

/** The Deployment as an owner of ReplicaSets. */
export function ownerOfDeployment(deployment: Stored<Deployment>): Owner {
  const { name, uid } = deployment.metadata;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    name,
    uid,
    selector: deployment.spec?.selector,
    isDeleting: isDeleting(deployment),
  };
}

/** Sorts the ReplicaSets of the Deployment into its current one and the old ones. */
export function rolloutOf(deployment: Stored<Deployment>, sets: readonly Stored<ReplicaSet>[]): Rollout {
  const wanted = canonicalText(deployment.spec?.template);
  const byAge = [...sets].sort((a, b) => ageOf(a) - ageOf(b) || (a.metadata.name < b.metadata.name ? -1 : 1));
  const current = byAge.find((set) => canonicalText(templateOf(set)) === wanted);
  return { deployment, current, old: byAge.filter((set) => set !== current) };
}

function ageOf({ metadata }: Stored<ReplicaSet>): number {
  return Date.parse(metadata.creationTimestamp ?? "");
}

/** The template without the label that its ReplicaSet added. */
function templateOf({ spec }: ReplicaSet) {
  const { [hashLabel]: _, ...labels } = spec?.template?.metadata?.labels ?? {};
  return { ...spec?.template, metadata: { ...spec?.template?.metadata, labels } };
}

/** The number of a ReplicaSet's rollout; 0 where it has none. */
export function revisionOf({ metadata }: ReplicaSet): number {
  return Number(metadata?.annotations?.[revisionAnnotation] ?? 0) || 0;
}

/** Replicas that a ReplicaSet asks for. */
export const sizeOf = ({ spec }: ReplicaSet): number => spec?.replicas ?? 1;
const availableOf = ({ status }: ReplicaSet): number => status?.availableReplicas ?? 0;
const sum = (sets: readonly Stored<ReplicaSet>[], count: (set: ReplicaSet) => number) =>
  sets.reduce((total, set) => total + count(set), 0);

/** How far a rolling update may go beyond and below the wanted number of pods. */
export function rollingLimits({ spec }: Deployment): {
  readonly surge: number;
  readonly unavailable: number;
} {
  const replicas = spec?.replicas ?? 1;
  if (spec?.strategy?.type === "Recreate") return { surge: 0, unavailable: replicas };
  const { maxSurge = "25%", maxUnavailable = "25%" } = spec?.strategy?.rollingUpdate ?? {};
  const surge = amountOf(maxSurge, replicas, Math.ceil);
  const unavailable = Math.min(replicas, amountOf(maxUnavailable, replicas, Math.floor));
  // Both may be rounded to nothing, with which no update would begin.
  return surge === 0 && unavailable === 0 ? { surge, unavailable: 1 } : { surge, unavailable };
}

/** A number, or a share of `total`. */
export function amountOf(value: number | string, total: number, round: (share: number) => number): number {
  if (typeof value === "number") return value;
  return value.endsWith("%") ? round((Number.parseInt(value, 10) * total) / 100) : Number.parseInt(value, 10);
}

/** Replicas with which a new ReplicaSet begins. */
export function firstReplicas({ deployment, old }: Rollout, oldPods: readonly Pod[]): number {
  const replicas = deployment.spec?.replicas ?? 1;
  if (deployment.spec?.strategy?.type === "Recreate") return oldPods.length === 0 ? replicas : 0;
  const room = replicas + rollingLimits(deployment).surge - sum(old, sizeOf);
  return Math.max(0, Math.min(replicas, room));
}

/** The next ReplicaSet to scale; undefined: none for now. @param oldPods pods of old ReplicaSets that have not ended */
export function nextScaling(rollout: Rollout, oldPods: readonly Pod[]): Scaling | undefined {
  const { deployment, current } = rollout;
  if (deployment.spec?.paused === true) return scaleActive(rollout);
  if (current === undefined) return undefined;
  return deployment.spec?.strategy?.type === "Recreate"
    ? recreate(rollout, current, oldPods)
    : roll(rollout, current);
}

/** While it is paused only a change of the number of replicas has an effect, on the newest that has some. */
function scaleActive({ deployment, current, old }: Rollout): Scaling | undefined {
  const all = [...old, ...(current === undefined ? [] : [current])];
  const newest = all.findLast((set) => sizeOf(set) > 0) ?? current ?? old.at(-1);
  if (newest === undefined || all.some((set) => set !== newest && sizeOf(set) > 0)) return undefined;
  return scaled(newest, deployment.spec?.replicas ?? 1);
}

function recreate(
  { deployment, old }: Rollout,
  current: Stored<ReplicaSet>,
  oldPods: readonly Pod[],
): Scaling | undefined {
  const running = old.find((set) => sizeOf(set) > 0);
  if (running !== undefined) return { set: running, replicas: 0 };
  return oldPods.length > 0 ? undefined : scaled(current, deployment.spec?.replicas ?? 1);
}

function roll({ deployment, old }: Rollout, current: Stored<ReplicaSet>): Scaling | undefined {
  const replicas = deployment.spec?.replicas ?? 1;
  const { surge, unavailable } = rollingLimits(deployment);
  const size = sizeOf(current);
  if (size > replicas) return { set: current, replicas };
  const all = size + sum(old, sizeOf);
  if (size < replicas) {
    const room = Math.min(replicas + surge - all, replicas - size);
    if (room > 0) return { set: current, replicas: size + room };
  }
  const minAvailable = replicas - unavailable;
  // Pods of the new ReplicaSet that are not available yet count as if they never will be.
  let mayGo = all - minAvailable - (size - availableOf(current));
  if (mayGo <= 0) return undefined;
  const unhealthy = old.find((set) => sizeOf(set) > availableOf(set));
  if (unhealthy !== undefined) {
    const gone = Math.min(mayGo, sizeOf(unhealthy) - availableOf(unhealthy));
    return { set: unhealthy, replicas: sizeOf(unhealthy) - gone };
  }
  mayGo = availableOf(current) + sum(old, availableOf) - minAvailable;
  const oldest = old.find((set) => sizeOf(set) > 0);
  if (mayGo <= 0 || oldest === undefined) return undefined;
  return { set: oldest, replicas: Math.max(0, sizeOf(oldest) - mayGo) };
}

function scaled(set: Stored<ReplicaSet>, replicas: number): Scaling | undefined {
  return sizeOf(set) === replicas ? undefined : { set, replicas };
}

/** Old ReplicaSets beyond the history, which have no pods; the oldest revisions go first. */
export function beyondHistory({ deployment, old }: Rollout): readonly Stored<ReplicaSet>[] {
  const limit = deployment.spec?.revisionHistoryLimit ?? 10;
  const removable = old.filter(
    (set) => sizeOf(set) === 0 && (set.status?.replicas ?? 0) === 0 && !isDeleting(set),
  );
  const byRevision = [...removable].sort((a, b) => revisionOf(a) - revisionOf(b));
  return byRevision.slice(0, Math.max(0, old.length - limit));
}
