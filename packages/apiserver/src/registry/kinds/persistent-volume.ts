/** PersistentVolume (kubernetes pkg/registry/core/persistentvolume, pkg/apis/core/validation). */
import type { KubeObject, Stored } from "@longshore/kube";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { sameJson } from "../../api/own.ts";
import type { Kind } from "../kind.ts";
import {
  canonicalQuantities,
  immutable,
  type Loose,
  type LooseObject,
  quantityProblems,
  withDefaults,
  withMember,
} from "./shaping.ts";
import { persistentSourceDefaults, sourceProblems, sourcesOf } from "./volume-sources.ts";

/** Access modes of 1.20. */
export const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];
const reclaimPolicies = ["Delete", "Recycle", "Retain"];
/** How a volume is given to pods. */
export const volumeModes = ["Block", "Filesystem"];

/** The spec of a volume, filled and canonical. */
export function volumeSpecDefaults(spec: Loose): Loose {
  return inlineVolumeSpecDefaults(
    withDefaults(spec, { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" }),
  );
}

/** That of an inline volume in a VolumeAttachment: policy and mode stay as they are (vectors kcm-migration). */
export function inlineVolumeSpecDefaults(spec: Loose): Loose {
  return persistentSourceDefaults(withMember(spec, "capacity", canonicalQuantities));
}

/** Problems of a volume's spec. */
export function volumeSpecProblems(spec: Loose, at: string, inline: boolean): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const modes: readonly string[] = spec.accessModes ?? [];
  if (modes.length === 0 && !inline) problems.push(requiredValue(`${at}.accessModes`));
  for (const mode of modes) {
    if (!accessModes.includes(mode)) problems.push(unsupportedValue(`${at}.accessModes`, mode, accessModes));
  }
  if (!inline) problems.push(...capacityProblems(spec.capacity ?? {}, `${at}.capacity`));
  problems.push(...sourceProblems(spec, at));
  const policy = spec.persistentVolumeReclaimPolicy;
  if (policy !== undefined && !reclaimPolicies.includes(policy)) {
    problems.push(unsupportedValue(`${at}.persistentVolumeReclaimPolicy`, policy, reclaimPolicies));
  }
  if (spec.volumeMode !== undefined && !volumeModes.includes(spec.volumeMode)) {
    problems.push(unsupportedValue(`${at}.volumeMode`, spec.volumeMode, volumeModes));
  }
  return problems;
}

function capacityProblems(capacity: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (Object.keys(capacity).length === 0) problems.push(requiredValue(at));
  if (capacity.storage === undefined || Object.keys(capacity).length > 1) {
    problems.push(unsupportedValue(at, capacity, ["storage"]));
  }
  if (capacity.storage === "0")
    problems.push(invalidValue(`${at}[storage]`, "0", "must be greater than zero"));
  return [...problems, ...quantityProblems(capacity, at)];
}

function validateUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const [spec, before] = [(next as LooseObject).spec ?? {}, (old as LooseObject).spec ?? {}];
  const problems: FieldProblem[] = [];
  const sources = new Set([...sourcesOf(spec), ...sourcesOf(before)]);
  if ([...sources].some((name) => !sameJson(spec[name], before[name]))) {
    problems.push(
      forbiddenValue(
        "spec.persistentvolumesource",
        "spec.persistentvolumesource is immutable after creation",
      ),
    );
  }
  if (spec.volumeMode !== before.volumeMode) {
    problems.push(invalidValue("volumeMode", spec.volumeMode, immutable));
  }
  if (before.nodeAffinity !== undefined && !sameJson(spec.nodeAffinity, before.nodeAffinity)) {
    problems.push(invalidValue("nodeAffinity", spec.nodeAffinity, immutable));
  }
  return problems;
}

/** See the file's header. */
export const persistentVolume: Kind = {
  group: "",
  versions: ["v1"],
  kind: "PersistentVolume",
  plural: "persistentvolumes",
  shortNames: ["pv"],
  namespaced: false,
  statusSubresource: true,
  answersDeleted: true,
  defaults: (object) =>
    withMember(
      withDefaults(object as LooseObject, { status: { phase: "Pending" } }),
      "spec",
      volumeSpecDefaults,
    ),
  prepareCreate: (object) => ({ ...object, status: { phase: "Pending" } }) as KubeObject,
  validate: (object) => volumeSpecProblems((object as LooseObject).spec ?? {}, "spec", false),
  validateUpdate,
};
