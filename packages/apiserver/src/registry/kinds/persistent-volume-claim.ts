/** PersistentVolumeClaim (kubernetes pkg/registry/core/persistentvolumeclaim, pkg/apis/core/validation). */
import { type KubeObject, parseQuantity, type Stored } from "@longshore/kube";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { sameJson } from "../../api/own.ts";
import type { Kind } from "../kind.ts";
import { accessModes, volumeModes } from "./persistent-volume.ts";
import {
  canonicalQuantities,
  immutable,
  type Loose,
  type LooseObject,
  quantityProblems,
  subdomainValue,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";

/** The spec of a claim, filled and canonical. */
export function claimSpecDefaults(spec: Loose): Loose {
  const filled = withMember(withDefaults(spec, { volumeMode: "Filesystem" }), "resources", (resources) =>
    withMember(withMember(resources, "requests", canonicalQuantities), "limits", canonicalQuantities),
  );
  // Only snapshots and claims are known as sources; anything else is dropped, as the reference does.
  const { kind, apiGroup = "" } = (filled.dataSource ?? {}) as Loose;
  const known =
    (kind === "PersistentVolumeClaim" && apiGroup === "") ||
    (kind === "VolumeSnapshot" && apiGroup === "snapshot.storage.k8s.io");
  return known || filled.dataSource === undefined ? filled : without(filled, "dataSource");
}

/** Problems of a claim's spec. */
export function claimSpecProblems(spec: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const modes: readonly string[] = spec.accessModes ?? [];
  if (modes.length === 0) {
    problems.push(requiredValue(`${at}.accessModes`, "at least 1 access mode is required"));
  }
  for (const mode of modes) {
    if (!accessModes.includes(mode)) problems.push(unsupportedValue(`${at}.accessModes`, mode, accessModes));
  }
  const size = spec.resources?.requests?.storage;
  if (size === undefined) problems.push(requiredValue(`${at}.resources[storage]`));
  else if (quantityProblems({ size }, at).length > 0 || parseQuantity(String(size)).isZero()) {
    problems.push(invalidValue(`${at}.resources[storage]`, size, "must be greater than zero"));
  }
  if (spec.storageClassName)
    problems.push(...subdomainValue(`${at}.storageClassName`, spec.storageClassName));
  if (spec.volumeMode !== undefined && !volumeModes.includes(spec.volumeMode)) {
    problems.push(unsupportedValue(`${at}.volumeMode`, spec.volumeMode, volumeModes));
  }
  return problems;
}

const immutableSpec = "spec is immutable after creation except resources.requests for bound claims";

function validateUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const [spec, before] = [(next as LooseObject).spec ?? {}, (old as LooseObject).spec ?? {}];
  const problems: FieldProblem[] = [];
  const bound = (old as LooseObject).status?.phase === "Bound";
  const [size, sizeBefore] = [spec.resources?.requests?.storage, before.resources?.requests?.storage];
  // A claim is bound by naming its volume once; a bound one may ask for more.
  let allowed: Loose = before;
  if ((before.volumeName ?? "") === "" && spec.volumeName)
    allowed = { ...allowed, volumeName: spec.volumeName };
  if (bound && size !== undefined) {
    const requests = { ...before.resources?.requests, storage: size };
    allowed = { ...allowed, resources: { ...before.resources, requests } };
  }
  if (!sameJson(spec, allowed)) problems.push(forbiddenValue("spec", immutableSpec));
  else if (
    size !== undefined &&
    sizeBefore !== undefined &&
    parseQuantity(size).compare(parseQuantity(sizeBefore)) < 0
  ) {
    problems.push(
      forbiddenValue("spec.resources.requests.storage", "field can not be less than previous value"),
    );
  }
  if (spec.volumeMode !== before.volumeMode)
    problems.push(invalidValue("volumeMode", spec.volumeMode, immutable));
  return problems;
}

/** See the file's header. */
export const persistentVolumeClaim: Kind = {
  group: "",
  versions: ["v1"],
  kind: "PersistentVolumeClaim",
  plural: "persistentvolumeclaims",
  shortNames: ["pvc"],
  namespaced: true,
  statusSubresource: true,
  answersDeleted: true,
  defaults: (object) =>
    withMember(
      withMember(
        withDefaults(object as LooseObject, { status: { phase: "Pending" } }),
        "spec",
        claimSpecDefaults,
      ),
      "status",
      (status) => withMember(status, "capacity", canonicalQuantities),
    ),
  prepareCreate: (object) => ({ ...object, status: { phase: "Pending" } }) as KubeObject,
  validate: (object) => claimSpecProblems((object as LooseObject).spec ?? {}, "spec"),
  validateUpdate,
};
