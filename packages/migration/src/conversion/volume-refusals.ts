/** Why one volume is not converted: pure functions of what the plan has read. Each says what to do. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { diskKeyOf } from "../crossing/disk-key.ts";
import type { ConversionIndex } from "./conversion-index.ts";
import type { ConversionPlanOptions } from "./conversion-options.ts";
import type { Refusal, RefusalCode, ScaledWorkload } from "./conversion-types.ts";
import type { ConversionView } from "./conversion-view.ts";
import { policyOf } from "./decide-volume-step.ts";

type Volume = Stored<PersistentVolume>;
type Claim = Stored<PersistentVolumeClaim>;

/** What is wrong with the PersistentVolume itself; empty: nothing. */
export function volumeRefusals(volume: Volume, index: ConversionIndex): readonly Refusal[] {
  const object = `PersistentVolume ${volume.metadata.name}`;
  const say = (code: RefusalCode, field: string, reason: string, remedy: string): readonly Refusal[] => [
    { code, object, field, reason, remedy },
  ];
  if (volume.metadata.deletionTimestamp !== undefined) {
    const policy = policyOf(volume);
    return policy === "Delete"
      ? say(
          "volume-deleting",
          "metadata.deletionTimestamp",
          "it is being deleted, and its policy is Delete: the disk goes with it",
          "set spec.persistentVolumeReclaimPolicy to Retain at once if the data are needed",
        )
      : say(
          "volume-deleting",
          "metadata.deletionTimestamp",
          "it is being deleted",
          "let it go, or leave it out",
        );
  }
  const phase = volume.status?.phase;
  if (phase === "Released") {
    return say(
      "volume-released",
      "status.phase",
      "its claim is gone",
      "remove spec.claimRef and bind a claim to it, or delete it",
    );
  }
  if (phase === "Failed") {
    return say(
      "volume-failed",
      "status.phase",
      `its reclamation failed: ${volume.status?.message ?? "no message"}`,
      "set its policy to Retain, and see the events of the volume",
    );
  }
  const shared = (index.volumesOf(diskKeyOf(volume) ?? "") ?? []).filter(
    (name) => name !== volume.metadata.name,
  );
  if (shared.length > 0) {
    return say(
      "disk-shared",
      "spec",
      `PersistentVolume ${shared.join(", ")} stands for the same disk`,
      "delete the one that is not needed, with policy Retain, and make a new plan",
    );
  }
  if (volume.spec?.claimRef?.name === undefined) {
    return say(
      "volume-without-claim",
      "spec.claimRef",
      "it has no claim",
      "bind a claim to it, or translate its manifest and create that in its place",
    );
  }
  return [];
}

/** What is wrong with its claim; empty: nothing. */
export function claimRefusals(volume: Volume, claim: Claim | undefined): readonly Refusal[] {
  const { namespace, name, uid } = volume.spec?.claimRef ?? {};
  const object = `PersistentVolumeClaim ${namespace}/${name}`;
  const say = (code: RefusalCode, field: string, reason: string, remedy: string): readonly Refusal[] => [
    { code, object, field, reason, remedy },
  ];
  if (claim === undefined) {
    return [
      {
        code: "volume-without-claim",
        object: `PersistentVolume ${volume.metadata.name}`,
        field: "spec.claimRef",
        reason: `its claim ${namespace}/${name} is not there`,
        remedy: "create the claim, or delete the volume",
      },
    ];
  }
  if (claim.metadata.deletionTimestamp !== undefined) {
    return say(
      "claim-deleting",
      "metadata.deletionTimestamp",
      `it is being deleted, kept by ${claim.metadata.finalizers?.join(", ") ?? "no finalizer"}`,
      "wait until it is gone; with policy Delete its disk goes, too",
    );
  }
  const isBound =
    claim.status?.phase === "Bound" &&
    claim.spec?.volumeName === volume.metadata.name &&
    uid === claim.metadata.uid;
  if (!isBound) {
    return say(
      "claim-not-bound",
      "status.phase",
      `it is ${claim.status?.phase ?? "Pending"}, with volumeName "${claim.spec?.volumeName ?? ""}"`,
      `wait until it and PersistentVolume ${volume.metadata.name} are bound to each other`,
    );
  }
  return [];
}

/** The owners of the claim: one that is gone has the garbage collector delete the new claim, and with policy Delete the disk. */
export function ownerRefusals(
  claim: Claim,
  index: ConversionIndex,
  { ownersPaused = false }: ConversionPlanOptions,
): readonly Refusal[] {
  const object = `PersistentVolumeClaim ${claim.metadata.namespace}/${claim.metadata.name}`;
  const field = "metadata.ownerReferences";
  return (claim.metadata.ownerReferences ?? []).flatMap((owner): readonly Refusal[] => {
    const { kind, name, uid, controller } = owner;
    if (kind === "Pod") {
      return [
        {
          code: "owner-needs-action",
          object,
          field,
          reason: `Pod ${name} owns it, with which it is deleted`,
          remedy:
            "for an ephemeral volume change the class in the pod's template; for a StatefulSet set persistentVolumeClaimRetentionPolicy.whenScaled to Retain",
        },
      ];
    }
    if (kind === "StatefulSet" || kind === "Deployment" || kind === "ReplicaSet") {
      if (index.workload(uid) !== undefined) return [];
      const remedy = "remove the reference if the claim is to stay";
      return [
        { code: "owner-needs-action", object, field, reason: `${kind} ${name}, its owner, is gone`, remedy },
      ];
    }
    if (ownersPaused) return [];
    return [
      {
        code: controller === true ? "owner-recreates-claim" : "owner-needs-action",
        object,
        field,
        reason: `${kind} ${name} owns it and may create it again at once`,
        remedy: `pause the operator of ${kind} ${name}, and say so: \`ownersPaused\``,
      },
    ];
  });
}

/** The driver must run before volumes of it are used. */
export function driverRefusals(
  driver: string,
  view: Pick<ConversionView, "csiDrivers" | "csiNodes">,
  object: string,
): readonly Refusal[] {
  const isThere =
    view.csiDrivers.some(({ metadata }) => metadata.name === driver) ||
    view.csiNodes.some(({ spec }) => spec.drivers?.some(({ name }) => name === driver));
  if (isThere) return [];
  return [
    {
      code: "driver-missing",
      object,
      field: "spec.csi.driver",
      reason: `no node has the driver ${driver}`,
      remedy: "deploy the driver first, and see it in the CSINode of each node",
    },
  ];
}

/** Who uses the disk, and which of these the run may scale. */
export interface VolumeUse {
  readonly inUseBy: readonly string[];
  readonly workloads: readonly ScaledWorkload[];
  readonly refusals: readonly Refusal[];
}

/** Finds the pods, their owners, and what holds the disk. */
export function volumeUse(
  volume: Volume,
  claim: Claim,
  index: ConversionIndex,
  { scaleDown = false, wait = false }: ConversionPlanOptions,
): VolumeUse {
  const pods = index.podsOf(claim);
  const workloads = new Map<string, ScaledWorkload>();
  const others: string[] = [];
  for (const pod of pods) {
    const workload = scalableOwner(pod, index);
    const text = `Pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    if (workload === undefined) others.push(text);
    else if ("owner" in workload) others.push(`${text} of ${workload.owner}`);
    else workloads.set(workload.uid, workload);
  }
  const podTexts = pods.map(({ metadata }) => `Pod ${metadata.namespace}/${metadata.name}`);
  const inUseBy = [...podTexts, ...index.holdersOf(volume)];
  const scaled = [...workloads.values()];
  if (inUseBy.length === 0) return { inUseBy, workloads: [], refusals: [] };
  const deleting = scaleDown ? deletingSet(scaled, index) : undefined;
  if (deleting !== undefined) return { inUseBy, workloads: [], refusals: [deleting] };
  if (wait) return { inUseBy, workloads: scaleDown ? scaled : [], refusals: [] };
  const object = `PersistentVolume ${volume.metadata.name}`;
  if (others.length > 0) {
    const remedy = "end them, or let the run wait for their end: `wait`";
    const refusal: Refusal = {
      code: "volume-in-use",
      object,
      reason: `in use by ${others.join(", ")}`,
      remedy,
    };
    return { inUseBy, workloads: [], refusals: [refusal] };
  }
  if (scaleDown && (scaled.length > 0 || pods.length === 0))
    return { inUseBy, workloads: scaled, refusals: [] };
  const names = scaled.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`).join(", ");
  const remedy =
    names === ""
      ? "wait until it is detached, or let the run do so: `wait`"
      : `scale ${names} to 0, or let the run do so: \`scaleDown\``;
  const refusal: Refusal = {
    code: "volume-in-use",
    object,
    reason: `in use by ${inUseBy.join(", ")}`,
    remedy,
  };
  return { inUseBy, workloads: [], refusals: [refusal] };
}

/** A StatefulSet that deletes its claims when it is scaled down (spec.persistentVolumeClaimRetentionPolicy). */
function deletingSet(workloads: readonly ScaledWorkload[], index: ConversionIndex): Refusal | undefined {
  const field = "spec.persistentVolumeClaimRetentionPolicy.whenScaled";
  const found = workloads.find(({ uid }) => {
    const { spec } = (index.workload(uid)?.object ?? {}) as {
      readonly spec?: { readonly persistentVolumeClaimRetentionPolicy?: { readonly whenScaled?: string } };
    };
    return spec?.persistentVolumeClaimRetentionPolicy?.whenScaled === "Delete";
  });
  if (found === undefined) return undefined;
  return {
    code: "owner-needs-action",
    object: `${found.kind} ${found.namespace}/${found.name}`,
    field,
    reason: "it is Delete: scaled down, the set deletes the claims of its pods",
    remedy: "set it to Retain first",
  };
}

/** The workload to scale, or by name the owner that must act; undefined: none brings the pod back. */
function scalableOwner(
  pod: Stored,
  index: ConversionIndex,
): ScaledWorkload | { readonly owner: string } | undefined {
  let owner = controllerOf(pod);
  if (owner === undefined) return undefined;
  for (;;) {
    const found = index.workload(owner.uid);
    if (found === undefined) return { owner: `${owner.kind} ${owner.name}` };
    const above = controllerOf(found.object);
    if (above === undefined) {
      const { namespace = "", name, uid } = found.object.metadata;
      return { kind: found.kind, namespace, name, uid, replicas: found.object.spec?.replicas ?? 1 };
    }
    owner = above;
  }
}

const controllerOf = ({ metadata }: Stored) =>
  metadata.ownerReferences?.find((each) => each.controller === true);
