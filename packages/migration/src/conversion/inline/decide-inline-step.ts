/**
 * What is to be done next with the inline volumes of one workload: a pure decision of what was observed, as for volumes.
 *
 * Invariants
 *  - The template changes, and claims go, only while nothing uses the disks: the attach/detach controller knows a disk of a pod and
 *    that of a claim by one name, so that two pods of two templates would share an attachment that belongs to neither.
 *  - Replicas come back only when the workload's controller has seen the template: it would make a pod of the old one otherwise.
 *  - A PersistentVolume is deleted only with policy Retain, as read from the API server.
 *
 * Source: docs/behaviour/controllers.md (attach/detach controller, persistent-volume controller).
 */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { diskKeyOf } from "../../crossing/disk-key.ts";
import type { ConversionDirection, Refusal } from "../conversion-types.ts";
import { areBound, policyOf } from "../decide-volume-step.ts";
import { inlineDiskKey } from "./inline-disks.ts";
import {
  type InlineDecision,
  type InlineObservation,
  type InlineStep,
  type PlannedInlineVolume,
  type PlannedTemplate,
  type TemplateVolume,
  type TemplateWorkload,
  templateName,
} from "./inline-types.ts";

/** What the decision knows beside the cluster. */
export interface InlineIntent {
  readonly planned: PlannedTemplate;
  readonly direction: ConversionDirection;
  /** The run has scaled the workload, which is to get its replicas again. */
  readonly isScaledDown: boolean;
  /** The run has asked for the deletion of the claims: it may find them being deleted. */
  readonly claimDeletionBegun: boolean;
  /** And of the PersistentVolumes. */
  readonly volumeDeletionBegun: boolean;
}

/** The next step. */
export function decideInlineStep(intent: InlineIntent, seen: InlineObservation): InlineDecision {
  const refusal = workloadRefusal(intent.planned, seen) ?? strangers(intent.planned, seen);
  if (refusal !== undefined) return { kind: "blocked", refusal };
  return intent.direction === "convert" ? decideConvert(intent, seen) : decideUndo(intent, seen);
}

function decideConvert(intent: InlineIntent, seen: InlineObservation): InlineDecision {
  const { planned } = intent;
  const deleting = deletingRefusal(planned, seen);
  if (deleting !== undefined) return { kind: "blocked", refusal: deleting };
  if (seen.volumes.includes(undefined)) return next("create volumes", "they are not there");
  if (seen.claims.includes(undefined)) return next("create claims", "their volumes are there");
  const unbound = planned.volumes.findIndex((_, at) => !isBound(seen.volumes[at], seen.claims[at]));
  if (unbound >= 0) {
    const phase = seen.claims[unbound]?.status?.phase ?? "Pending";
    return next("await claims bound", `claim ${planned.volumes[unbound]?.claim.metadata?.name} is ${phase}`);
  }
  return turn(intent, seen, "convert") ?? replicas(intent, seen) ?? { kind: "done" };
}

function decideUndo(intent: InlineIntent, seen: InlineObservation): InlineDecision {
  const { planned, claimDeletionBegun, volumeDeletionBegun } = intent;
  const turning = turn(intent, seen, "undo");
  if (turning !== undefined) return turning;
  const { volumes, claims, claimUsers } = seen;
  const isThere = claims.some((claim) => claim !== undefined);
  if (isThere || volumes.some((volume) => volume !== undefined)) {
    const risky = volumes.find((volume) => volume !== undefined && policyOf(volume) !== "Retain");
    if (risky !== undefined) return next("retain volumes", `the policy is ${policyOf(risky)}`);
  }
  if (isThere) {
    // A pod that uses a claim loses the disk with it.
    if (claimUsers.length > 0) return next("wait for quiet", claimUsers.join(", "));
    const left = claims.filter((claim) => claim !== undefined);
    const isGoing = left.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
    if (isGoing && claimDeletionBegun) return next("await claims gone", finalizersOf(left[0]));
    return next("delete claims", "the template names the disks again");
  }
  const left = volumes.filter((volume) => volume !== undefined);
  if (left.length > 0) {
    const isGoing = left.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
    return isGoing && volumeDeletionBegun
      ? next("await volumes gone", finalizersOf(left[0]))
      : next("delete volumes", `no claim of ${templateName(planned)} is there`);
  }
  return replicas(intent, seen) ?? { kind: "done" };
}

/** From the template of one form to that of the other. */
function turn(
  { planned }: InlineIntent,
  { workload, users }: InlineObservation,
  direction: ConversionDirection,
): InlineDecision | undefined {
  const volumes = workload?.spec?.template?.spec?.volumes ?? [];
  const goal = direction === "convert" ? "claim" : "disk";
  const isTurned = planned.volumes.every((each) => formIn(volumes, each) === goal);
  if (isTurned) {
    const { generation = 0 } = workload?.metadata ?? {};
    const observed = workload?.status?.observedGeneration ?? 0;
    if (observed >= generation) return undefined;
    return next("await template", `its controller has seen generation ${observed} of ${generation}`);
  }
  const holders = [...users, ...replicasLeft(workload)].join(", ");
  if (planned.scaleDown && (workload?.spec?.replicas ?? 1) > 0) return next("scale down", holders);
  if (holders !== "") return next("wait for quiet", holders);
  return next("change template", "nothing uses the disks");
}

/** The workload's controller may make or keep pods until it has seen that there are to be none. */
function replicasLeft(workload: TemplateWorkload | undefined): readonly string[] {
  if (workload === undefined) return [];
  const { spec, status, metadata } = workload;
  const text = `${metadata?.name}`;
  const wanted = spec?.replicas ?? 1;
  if (wanted > 0) return [`${text} with spec.replicas ${wanted}`];
  if ((status?.replicas ?? 0) > 0) return [`${text} with status.replicas ${status?.replicas}`];
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  return isSeen ? [] : [`${text}, whose controller has not seen its replicas`];
}

function replicas(
  { planned, isScaledDown }: InlineIntent,
  { workload }: InlineObservation,
): InlineDecision | undefined {
  const wanted = planned.workload.replicas;
  if (!isScaledDown || wanted === 0 || (workload?.spec?.replicas ?? 1) > 0) return undefined;
  return next("scale up", `${wanted} replicas`);
}

/** In which form the template has the volume; undefined: in neither. */
export function formIn(
  volumes: readonly TemplateVolume[],
  { name, before, after, claim }: PlannedInlineVolume,
): "claim" | "disk" | undefined {
  const volume = volumes.find((each) => each.name === name);
  if (volume === undefined) return undefined;
  const claimName = volume.persistentVolumeClaim?.claimName;
  if (claimName !== undefined) {
    return claimName === after.persistentVolumeClaim?.claimName ? "claim" : undefined;
  }
  const { namespace = "" } = claim.metadata ?? {};
  const key = inlineDiskKey(volume, namespace);
  return key !== undefined && key === inlineDiskKey(before, namespace) ? "disk" : undefined;
}

function workloadRefusal(planned: PlannedTemplate, { workload }: InlineObservation): Refusal | undefined {
  const object = templateName(planned);
  if (workload?.metadata.uid !== planned.workload.uid) {
    return changed(
      object,
      "metadata.uid",
      workload === undefined ? "it is gone" : "it is another one than the plan names",
      "its PersistentVolumes keep the disks with policy Retain: make a new plan, or remove them and their claims by hand",
    );
  }
  const volumes = workload.spec?.template?.spec?.volumes ?? [];
  const other = planned.volumes.find((each) => formIn(volumes, each) === undefined);
  if (other === undefined) return undefined;
  return changed(
    object,
    `spec.template.spec.volumes (${other.name})`,
    "it names neither the disk nor the claim of the conversion",
    "put back one of the two, and run this again",
  );
}

/** Objects under names of the conversion that stand for another disk. */
function strangers(planned: PlannedTemplate, seen: InlineObservation): Refusal | undefined {
  for (const [at, { volume, claim }] of planned.volumes.entries()) {
    const made = seen.volumes[at];
    const ref = made?.spec?.claimRef;
    const { name, namespace } = claim.metadata ?? {};
    const isOurs =
      made === undefined ||
      (diskKeyOf(made) === diskKeyOf(volume) && ref?.name === name && ref?.namespace === namespace);
    if (!isOurs) {
      return taken(
        `PersistentVolume ${made.metadata.name}`,
        "spec",
        "a volume of that name stands for another disk or another claim",
      );
    }
    const bound = seen.claims[at]?.spec?.volumeName;
    if (seen.claims[at] !== undefined && bound !== volume.metadata?.name) {
      return taken(
        `PersistentVolumeClaim ${namespace}/${name}`,
        "spec.volumeName",
        `a claim of that name is for ${bound === undefined || bound === "" ? "no volume" : bound}`,
      );
    }
  }
  return undefined;
}

function deletingRefusal(planned: PlannedTemplate, seen: InlineObservation): Refusal | undefined {
  const field = "metadata.deletionTimestamp";
  const volume = seen.volumes.find((each) => each?.metadata.deletionTimestamp !== undefined);
  if (volume !== undefined) {
    const object = `PersistentVolume ${volume.metadata.name}`;
    const remedy = "let it go, and run this again: it is made once more";
    return { code: "volume-deleting", object, field, reason: "it is being deleted", remedy };
  }
  const claim = seen.claims.find((each) => each?.metadata.deletionTimestamp !== undefined);
  if (claim === undefined) return undefined;
  const object = `PersistentVolumeClaim ${planned.workload.namespace}/${claim.metadata.name}`;
  const remedy = "wait until it is gone, and run this again: the disk is kept by policy Retain";
  return { code: "claim-deleting", object, field, reason: "it is being deleted", remedy };
}

function isBound(
  volume: Stored<PersistentVolume> | undefined,
  claim: Stored<PersistentVolumeClaim> | undefined,
): boolean {
  return volume !== undefined && claim !== undefined && areBound(volume, claim);
}

const finalizersOf = (object: Stored | undefined): string =>
  `metadata.finalizers: ${object?.metadata.finalizers?.join(", ") ?? "none"}`;

const next = (step: InlineStep, why: string): InlineDecision => ({ kind: "step", step, why });

function changed(object: string, field: string, reason: string, remedy: string): Refusal {
  return { code: "changed-by-others", object, field, reason, remedy };
}

function taken(object: string, field: string, reason: string): Refusal {
  return { code: "name-taken", object, field, reason, remedy: "rename or remove it, and make a new plan" };
}
