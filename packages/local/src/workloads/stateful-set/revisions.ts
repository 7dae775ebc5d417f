/**
 * The templates that a StatefulSet has had, each kept in a ControllerRevision: which one its pods are to have, and which one
 * they come from. Pure. Source: apps/v1 ControllerRevision; kubernetes pkg/controller/statefulset getStatefulSetRevisions,
 * truncateHistory; pkg/controller/history.
 */
import type { ControllerRevision, Pod, PodTemplateSpec, StatefulSet, Stored } from "@longshore/kube";
import { controllerReference, type Owner } from "../pod-sets/claim-pods.ts";
import { canonicalText, revisionLabel, templateHash } from "../pod-sets/pod-from-template.ts";

const hashLabel = "controller.kubernetes.io/hash";
/** How much of the set's name is in that of a revision: the hash behind it is to fit (pkg/controller/history ControllerRevisionName). */
const nameLengthMax = 223;

/** A template by the name of its revision. */
export interface NamedTemplate {
  readonly name: string;
  readonly template: PodTemplateSpec | undefined;
}

/** Where a set comes from and where it goes. */
export interface SetRevisions {
  /** The template from which a rollout began; that of `update` where none is under way. */
  readonly current: NamedTemplate;
  /** The template of the set. */
  readonly update: NamedTemplate;
}

/** What has to be written before the revision of the set's template is there and is the last one. */
export type RevisionWrite =
  | {
      readonly step: "createRevision";
      readonly revision: ControllerRevision;
      /** How often a name was another template's. */
      readonly collisions: number;
    }
  | {
      readonly step: "numberRevision";
      readonly revision: Stored<ControllerRevision>;
      readonly number: number;
    };

/** The revision that is written next; undefined: the last one has the template. @param owned the set's own */
export function revisionWrite(
  set: Stored<StatefulSet>,
  owner: Owner,
  owned: readonly Stored<ControllerRevision>[],
): RevisionWrite | undefined {
  const sorted = inOrder(owned);
  const last = sorted.at(-1);
  const equal = sorted.findLast((revision) => hasTemplate(revision, set.spec?.template));
  const number = (last?.revision ?? 0) + 1;
  if (equal === undefined) {
    const collisions = set.status?.collisionCount ?? 0;
    return { step: "createRevision", revision: revisionFor(set, owner, { number, collisions }), collisions };
  }
  // A way back: the old revision becomes the last one again.
  return equal === last ? undefined : { step: "numberRevision", revision: equal, number };
}

/** The revisions of a set whose last one has its template; undefined: it has none. */
export function revisionsOf(
  set: Stored<StatefulSet>,
  owned: readonly Stored<ControllerRevision>[],
): SetRevisions | undefined {
  const update = inOrder(owned).at(-1);
  if (update === undefined) return undefined;
  const current = owned.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update;
  return { current: named(current), update: named(update) };
}

/** Whether the revision keeps that template. */
export function hasTemplate(revision: ControllerRevision, template: PodTemplateSpec | undefined): boolean {
  return canonicalText(named(revision).template) === canonicalText(template);
}

/** Revisions beyond the history, which no pod has: the oldest first. */
export function revisionsBeyondHistory(
  set: Stored<StatefulSet>,
  owned: readonly Stored<ControllerRevision>[],
  pods: readonly Stored<Pod>[],
): readonly Stored<ControllerRevision>[] {
  const revisions = revisionsOf(set, owned);
  const live = new Set([
    revisions?.current.name,
    revisions?.update.name,
    ...pods.map(({ metadata }) => metadata.labels?.[revisionLabel]),
  ]);
  const old = inOrder(owned).filter(({ metadata }) => !live.has(metadata.name));
  return old.slice(0, Math.max(0, old.length - (set.spec?.revisionHistoryLimit ?? 10)));
}

function revisionFor(
  set: Stored<StatefulSet>,
  owner: Owner,
  { number, collisions }: { readonly number: number; readonly collisions: number },
): ControllerRevision {
  const { name, namespace = "default", annotations } = set.metadata;
  const template = set.spec?.template;
  const hash = templateHash(template, collisions);
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: `${name.slice(0, nameLengthMax)}-${hash}`,
      namespace,
      labels: { ...template?.metadata?.labels, [hashLabel]: hash },
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [controllerReference(owner)],
    },
    // A patch of the set: `kubectl rollout undo` sends it.
    data: { spec: { template: { ...template, $patch: "replace" } } },
    revision: number,
  };
}

function named({ metadata, data }: ControllerRevision): NamedTemplate {
  const { spec } = (data ?? {}) as { readonly spec?: { readonly template?: object } };
  const { $patch: _, ...template } = (spec?.template ?? {}) as { readonly $patch?: string };
  return { name: metadata?.name ?? "", template };
}

/** By number; of equal ones the younger is later. */
function inOrder(revisions: readonly Stored<ControllerRevision>[]): readonly Stored<ControllerRevision>[] {
  const age = ({ metadata }: Stored<ControllerRevision>) => Date.parse(metadata.creationTimestamp ?? "");
  return [...revisions].sort(
    (a, b) => a.revision - b.revision || age(a) - age(b) || (a.metadata.name < b.metadata.name ? -1 : 1),
  );
}
