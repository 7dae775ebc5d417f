/** Which inline volumes of pod templates become claims, and why others stay as they are. Pure. */
import { isPodTerminal, type KubeObject, type Pod, parseLabelSelector, type Stored } from "@longshore/kube";
import { isInlineMigratable } from "@longshore/translation";
import { type ClaimSizes, noClaimSizes } from "../../convert/claims-for-inline-volumes.ts";
import type { KubeObject as ParsedObject } from "../../convert/kube-object.ts";
import { inlineMigratableVolumes, podHolderOf } from "../../convert/pod-volumes.ts";
import { diskKeyOf } from "../../crossing/disk-key.ts";
import type { Refusal, ScaledWorkload } from "../conversion-types.ts";
import { inlineVolumes, ownersOf } from "../objects/index.ts";
import { driverRefusals } from "../volume-refusals.ts";
import { inlineDiskKey, inlinePluginOf } from "./inline-disks.ts";
import { kindRefusal, stateRefusals } from "./inline-refusals.ts";
import type {
  InlinePlan,
  PlannedInlineVolume,
  PlannedTemplate,
  TemplateVolume,
  TemplateWorkload,
} from "./inline-types.ts";
import type { InlineView } from "./inline-view.ts";

/** Which templates are meant, and how they are dealt with; of several conditions all must hold. */
export interface InlinePlanOptions {
  /** As `Deployment/shop/web`, the kind in any case. */
  readonly workloads?: readonly string[];
  readonly namespaces?: readonly string[];
  /** In-tree names of plugins. */
  readonly plugins?: readonly string[];
  /** Selects workloads by their labels. */
  readonly selector?: string;
  /** Of the disks: a claim states a size, and a template does not. */
  readonly sizes?: ClaimSizes;
  /** The workloads are scaled to no replicas for the time, and back. */
  readonly scaleDown?: boolean;
  /** Workloads with replicas are waited for. */
  readonly wait?: boolean;
}

/** An object whose pods have inline volumes that a driver takes over. */
interface Holder {
  readonly object: Stored;
  readonly key: string;
  readonly volumes: readonly TemplateVolume[];
}

/** @param skipped keys of workloads that an unfinished run carries */
export function inlinePlanOf(
  view: InlineView,
  options: InlinePlanOptions,
  skipped: ReadonlySet<string> = new Set(),
): InlinePlan {
  const holders = holdersOf(view);
  const disks = disksOf(view, holders);
  const templates: PlannedTemplate[] = [];
  const refused: { volume: string; refusals: readonly Refusal[] }[] = [...missing(view, options)];
  for (const holder of holders) {
    if (skipped.has(holder.key) || !isSelected(holder, options)) continue;
    const planned = planTemplate(holder, view, disks, options);
    if ("refusals" in planned) refused.push({ volume: textOf(holder.object), refusals: planned.refusals });
    else templates.push(planned);
  }
  return { templates, refused };
}

/** Templates, and pods that none has made; what a Deployment or a CronJob has made comes from its template. */
function holdersOf({ workloads, pods }: InlineView): readonly Holder[] {
  const free = pods
    .filter((pod) => !isPodTerminal(pod) && controllerOf(pod) === undefined)
    .map((pod): Stored => ({ ...pod, apiVersion: "v1", kind: "Pod" }));
  return [...workloads, ...free].flatMap((object): Holder[] => {
    const maker = controllerOf(object)?.kind;
    if (maker === "Deployment" || maker === "CronJob") return [];
    const volumes = inlineVolumesIn(object).map(([, volume]) => volume as TemplateVolume);
    return volumes.length === 0 ? [] : [{ object, key: keyOfObject(object), volumes }];
  });
}

function inlineVolumesIn(object: Stored) {
  const parsed = object as unknown as ParsedObject;
  const holder = podHolderOf(parsed);
  return holder === undefined ? [] : inlineMigratableVolumes(parsed, holder);
}

/** Who has each disk: templates, pods, and PersistentVolumes, by name. */
function disksOf(
  { volumes }: InlineView,
  holders: readonly Holder[],
): ReadonlyMap<string, readonly string[]> {
  const disks = new Map<string, string[]>();
  const add = (key: string | undefined, text: string) => {
    if (key === undefined) return;
    const list = disks.get(key);
    if (list === undefined) disks.set(key, [text]);
    else list.push(text);
  };
  for (const volume of volumes) add(diskKeyOf(volume), `PersistentVolume ${volume.metadata.name}`);
  for (const { object, volumes: inline } of holders) {
    const { namespace = "" } = object.metadata;
    for (const volume of inline) add(inlineDiskKey(volume, namespace), textOf(object));
  }
  return disks;
}

function isSelected(
  { object, key, volumes }: Holder,
  { workloads, namespaces, plugins, selector }: InlinePlanOptions,
): boolean {
  if (workloads !== undefined && !workloads.some((each) => wantedKey(each) === key)) return false;
  if (namespaces !== undefined && !namespaces.includes(object.metadata.namespace ?? "")) return false;
  if (plugins !== undefined && !volumes.some((each) => plugins.includes(inlinePluginOf(each).plugin)))
    return false;
  return selector === undefined || parseLabelSelector(selector).matches(object.metadata.labels ?? {});
}

function missing({ workloads, pods }: InlineView, { workloads: wanted = [] }: InlinePlanOptions) {
  if (wanted.length === 0) return [];
  const named = new Map(
    [...workloads, ...pods.map((pod): Stored => ({ ...pod, kind: "Pod" }))].map((each) => [
      keyOfObject(each),
      each,
    ]),
  );
  return wanted.flatMap((text) => {
    const object = named.get(wantedKey(text));
    if (object !== undefined && inlineVolumesIn(object).length > 0) return [];
    const refusal: Refusal = {
      code: "volume-not-found",
      object: text,
      reason:
        object === undefined
          ? "it is not there"
          : "none of its volumes is an in-tree volume that a CSI driver takes over",
      remedy: "name a workload as KIND/NAMESPACE/NAME",
    };
    return [{ volume: text, refusals: [refusal] }];
  });
}

function planTemplate(
  { object, volumes }: Holder,
  view: InlineView,
  disks: ReadonlyMap<string, readonly string[]>,
  options: InlinePlanOptions,
): PlannedTemplate | { readonly refusals: readonly Refusal[] } {
  const text = textOf(object);
  const { namespace = "" } = object.metadata;
  const kind = kindRefusal(object, text);
  if (kind !== undefined) return { refusals: [kind] };
  const shared = volumes.flatMap((volume) => sharedDisk(volume, namespace, text, disks));
  if (shared.length > 0) return { refusals: shared };
  const unsized = volumes.flatMap((volume) => sizeRefusals(volume, text, options));
  if (unsized.length > 0) return { refusals: unsized };
  // What many pods may share is decided by the access modes below.
  const single = { ...object, spec: { ...(object as TemplateWorkload).spec, replicas: 1 } };
  const converted = inlineVolumes(single, options.sizes ?? noClaimSizes);
  if ("failure" in converted) {
    const reason = `its volumes cannot become claims: ${converted.failure}`;
    return {
      refusals: [{ code: "translation", object: text, reason, remedy: "correct the field named" }],
    };
  }
  const after = (converted.object as TemplateWorkload).spec?.template?.spec?.volumes ?? [];
  const planned = volumes.map((before, at): PlannedInlineVolume => {
    const name = before.name ?? "";
    return {
      name,
      ...inlinePluginOf(before),
      before,
      after: after.find((each) => each.name === name) ?? {},
      volume: converted.volumes[at] ?? {},
      claim: converted.claims[at] ?? {},
    };
  });
  const users = podsOf(planned, namespace, view.pods);
  const refusals = [
    ...[...new Set(planned.map(({ driver }) => driver))].flatMap((driver) =>
      driverRefusals(driver, view, text),
    ),
    ...planned.flatMap((each) => namesTaken(each, view)),
    ...sharingRefusals(object, text, planned),
    ...stateRefusals(object, text, users, options),
  ];
  if (refusals.length > 0) return { refusals };
  const { name, uid } = object.metadata;
  const { replicas = 1 } = (object as TemplateWorkload).spec ?? {};
  const workload = { kind: object.kind as ScaledWorkload["kind"], namespace, name, uid, replicas };
  return {
    workload,
    volumes: planned,
    scaleDown: options.scaleDown === true,
    owners: ownersOf(
      templateOnly(object, volumes),
      templateOnly(
        object,
        planned.map((each) => each.after),
      ),
    ),
    inUseBy: users.map((pod) => `Pod ${pod.metadata.namespace}/${pod.metadata.name}`),
  };
}

/** The part of the template that changes, before and after. */
export function templateForms({ workload, volumes }: PlannedTemplate): readonly [KubeObject, KubeObject] {
  const { kind, name, namespace } = workload;
  const form = (own: readonly TemplateVolume[]): TemplateWorkload => ({
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace },
    spec: { template: { spec: { volumes: own } } },
  });
  return [form(volumes.map(({ before }) => before)), form(volumes.map(({ after }) => after))];
}

/** The object with no more than these volumes: what its owner is to commit. */
function templateOnly(
  { apiVersion, kind, metadata }: Stored,
  volumes: readonly TemplateVolume[],
): TemplateWorkload {
  const { name, namespace, labels, annotations } = metadata;
  const marks = {
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...marks },
    spec: { template: { spec: { volumes } } },
  };
}

function sharedDisk(
  volume: TemplateVolume,
  namespace: string,
  text: string,
  disks: ReadonlyMap<string, readonly string[]>,
): readonly Refusal[] {
  const all = disks.get(inlineDiskKey(volume, namespace) ?? "") ?? [];
  const others = all.filter((each) => each !== text);
  const isTwice = all.length - others.length > 1;
  if (others.length === 0 && !isTwice) return [];
  const isVolume = others.some((each) => each.startsWith("PersistentVolume "));
  return [
    {
      code: "disk-shared",
      object: text,
      field: `spec.template.spec.volumes (${volume.name})`,
      reason: `${others.length === 0 ? "another volume of it" : others.join(", ")} stands for the same disk`,
      remedy: isVolume
        ? "have the template name the claim of that PersistentVolume, or remove it with policy Retain"
        : "have one template use the disk, and make a new plan",
    },
  ];
}

function sizeRefusals(
  { name = "" }: TemplateVolume,
  object: string,
  { sizes = noClaimSizes }: InlinePlanOptions,
): readonly Refusal[] {
  if (sizes.byVolume.has(name) || sizes.others !== undefined) return [];
  const reason = "a claim states a size, and a template does not say how large its disk is";
  const field = `spec.template.spec.volumes (${name})`;
  return [{ code: "translation", object, field, reason, remedy: "give the size of the disk: `sizes`" }];
}

/** Several pods have one claim only where its volume may be had by many nodes. */
function sharingRefusals(
  object: Stored,
  text: string,
  planned: readonly PlannedInlineVolume[],
): readonly Refusal[] {
  const sharedBy = podHolderOf(object as unknown as ParsedObject)?.sharedBy;
  if (sharedBy === undefined) return [];
  return planned.flatMap(({ name, claim }): readonly Refusal[] => {
    const modes = claim.spec?.accessModes ?? [];
    if (modes.some((mode) => mode === "ReadOnlyMany" || mode === "ReadWriteMany")) return [];
    return [
      {
        code: "owner-needs-action",
        object: text,
        field: "spec.replicas",
        reason: `${sharedBy} would share one claim of access mode ${modes.join(", ")} (${name})`,
        remedy: "scale it to 1, or give each pod a claim of its own with a StatefulSet",
      },
    ];
  });
}

/** Pods that have one of the disks, by their own volumes or by the claim that is to be. */
function podsOf(
  planned: readonly PlannedInlineVolume[],
  namespace: string,
  pods: readonly Stored<Pod>[],
): readonly Stored<Pod>[] {
  const keys = new Set(planned.map(({ before }) => inlineDiskKey(before, namespace)));
  return pods.filter((pod) => {
    if (isPodTerminal(pod)) return false;
    const inline = (pod.spec?.volumes ?? []) as readonly TemplateVolume[];
    return inline.some(
      (volume) => isInlineMigratable(volume) && keys.has(inlineDiskKey(volume, pod.metadata.namespace ?? "")),
    );
  });
}

function namesTaken({ volume, claim }: PlannedInlineVolume, view: InlineView): readonly Refusal[] {
  const { name, namespace } = claim.metadata ?? {};
  const isThere =
    view.volumes.some(({ metadata }) => metadata.name === volume.metadata?.name) &&
    `PersistentVolume ${volume.metadata?.name}`;
  const isClaimThere =
    view.claims.some(({ metadata }) => metadata.name === name && metadata.namespace === namespace) &&
    `PersistentVolumeClaim ${namespace}/${name}`;
  return [isThere, isClaimThere].flatMap((object) =>
    object === false
      ? []
      : [
          {
            code: "name-taken" as const,
            object,
            field: "metadata.name",
            reason: "it is there already, and the new one would have its name",
            remedy: "rename or remove it",
          },
        ],
  );
}

const controllerOf = ({ metadata }: Stored) =>
  metadata.ownerReferences?.find((each) => each.controller === true);

const textOf = ({ kind, metadata }: Stored): string => `${kind} ${metadata.namespace}/${metadata.name}`;
const keyOfObject = ({ kind = "", metadata }: Stored): string =>
  `${kind.toLowerCase()}.${metadata.namespace}.${metadata.name}`;

/** `Deployment/shop/web` as a key. */
export function wantedKey(text: string): string {
  const [kind = "", namespace = "", ...name] = text.split("/");
  return `${kind.toLowerCase()}.${namespace}.${name.join("/")}`;
}
