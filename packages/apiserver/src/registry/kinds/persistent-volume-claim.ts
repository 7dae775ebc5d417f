/** PersistentVolumeClaim (kubernetes pkg/registry/core/persistentvolumeclaim, pkg/apis/core/validation). */
import { type KubeObject, parseQuantity, type Stored } from "@longshore/kube/basics";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { qualifiedNameProblems, subdomainProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { labelSelectorProblems } from "./label-selector-problems.ts";
import { accessModeProblems, positiveProblems, volumeModes } from "./persistent-volume.ts";
import {
  canonicalQuantities,
  immutable,
  type Loose,
  type LooseObject,
  subdomainValue,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";

/** The spec of a claim, filled and canonical. */
export function claimSpecDefaults(spec: Loose): Loose {
  return withMember(withDefaults(spec, { volumeMode: "Filesystem" }), "resources", (resources) =>
    withMember(withMember(resources, "requests", canonicalQuantities), "limits", canonicalQuantities),
  );
}

/** Sources that are known by themselves: other claims, and snapshots. */
function isKnownSource({ kind, apiGroup = "" }: Loose): boolean {
  return (
    (kind === "PersistentVolumeClaim" && apiGroup === "") ||
    (kind === "VolumeSnapshot" && apiGroup === "snapshot.storage.k8s.io")
  );
}

/**
 * Makes `dataSource` and `dataSourceRef` agree (NormalizeDataSources), or, where there is no `dataSourceRef`, drops
 * a source that is not known (EnforceDataSourceBackwardsCompatibility).
 */
export function normalizedSources(spec: Loose, version: EmulatedVersion, before: Loose = {}): Loose {
  const { dataSource, dataSourceRef } = spec;
  if (!version.gate("AnyVolumeDataSource")) {
    const known = dataSource === undefined || before.dataSource !== undefined || isKnownSource(dataSource);
    return known ? without(spec, "dataSourceRef") : without(without(spec, "dataSource"), "dataSourceRef");
  }
  if (dataSource !== undefined && dataSourceRef === undefined) return { ...spec, dataSourceRef: dataSource };
  // `dataSource` has no namespace: a reference to another one is not copied there.
  const own = dataSourceRef !== undefined && (dataSourceRef.namespace ?? "") === "";
  if (own && dataSource === undefined && isKnownSource(dataSourceRef)) {
    return { ...spec, dataSource: without(dataSourceRef, "namespace") };
  }
  return spec;
}

function sourceProblems(source: Loose, at: string, version: EmulatedVersion): FieldProblem[] {
  const { apiGroup = "", kind = "", name = "", namespace } = source;
  const problems: FieldProblem[] = [];
  if (name === "") problems.push(requiredValue(`${at}.name`));
  if (kind === "") problems.push(requiredValue(`${at}.kind`));
  if (apiGroup === "" && kind !== "PersistentVolumeClaim") {
    const why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    problems.push(invalidValue(at, kind, version.gate("AnyVolumeDataSource") ? why : ""));
  }
  if (namespace) {
    problems.push(
      ...subdomainProblems(namespace).map((why) => invalidValue(`${at}.namespace`, namespace, why)),
    );
  }
  return problems;
}

function sourcesProblems(
  { dataSource, dataSourceRef }: Loose,
  at: string,
  version: EmulatedVersion,
): FieldProblem[] {
  const problems = dataSource === undefined ? [] : sourceProblems(dataSource, `${at}.dataSource`, version);
  if (dataSourceRef !== undefined)
    problems.push(...sourceProblems(dataSourceRef, `${at}.dataSourceRef`, version));
  if (dataSource === undefined || dataSourceRef === undefined) return problems;
  if (dataSourceRef.namespace) {
    const why = "may not be specified when dataSourceRef.namespace is specified";
    return [...problems, invalidValue(at, `${at}.dataSource`, why)];
  }
  if (!sameJson(dataSource, without(dataSourceRef, "namespace"))) {
    problems.push(invalidValue(at, `${at}.dataSource`, "must match dataSourceRef"));
  }
  return problems;
}

/** Problems of a claim's spec. */
export function claimSpecProblems(spec: Loose, at: string, version: EmulatedVersion): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const modes: readonly string[] = spec.accessModes ?? [];
  if (modes.length === 0) {
    problems.push(requiredValue(`${at}.accessModes`, "at least 1 access mode is required"));
  }
  problems.push(...labelSelectorProblems(spec.selector, `${at}.selector`));
  problems.push(...accessModeProblems(modes, `${at}.accessModes`, version));
  const size = spec.resources?.requests?.storage;
  if (size === undefined) problems.push(requiredValue(`${at}.resources[storage]`));
  // The last one only: of a claim's size the reference says no more than that it must be above zero.
  else problems.push(...positiveProblems(size, `${at}.resources[storage]`).slice(-1));
  if (spec.storageClassName)
    problems.push(...subdomainValue(`${at}.storageClassName`, spec.storageClassName));
  if (spec.volumeMode !== undefined && !volumeModes.includes(spec.volumeMode)) {
    problems.push(unsupportedValue(`${at}.volumeMode`, spec.volumeMode, volumeModes));
  }
  problems.push(...sourcesProblems(spec, at, version));
  const { volumeAttributesClassName: attributes } = spec;
  if (attributes && version.gate("VolumeAttributesClass")) {
    problems.push(...subdomainValue(`${at}.volumeAttributesClassName`, attributes));
  }
  return problems;
}

const rule120 = "spec is immutable after creation except resources.requests for bound claims";
const rule = `${rule120.replace(" for", " and volumeAttributesClassName for")}`;

/** The old spec of a claim with the changes that are allowed. */
function allowedSpec(spec: Loose, before: Loose, bound: boolean, version: EmulatedVersion): Loose {
  let allowed: Loose = before;
  // A claim is bound by naming its volume once; a bound one may ask for more.
  if ((before.volumeName ?? "") === "" && spec.volumeName)
    allowed = { ...allowed, volumeName: spec.volumeName };
  const size = spec.resources?.requests?.storage;
  if (bound && size !== undefined && version.gate("ExpandPersistentVolumes")) {
    allowed = {
      ...allowed,
      resources: { ...before.resources, requests: { ...before.resources?.requests, storage: size } },
    };
  }
  if (version.gate("VolumeAttributesClass")) {
    const { volumeAttributesClassName: attributes } = spec;
    allowed =
      attributes === undefined
        ? without(allowed, "volumeAttributesClassName")
        : { ...allowed, volumeAttributesClassName: attributes };
  }
  // A class may be given where none was said, once there are default classes.
  if (
    version.has("retroactiveStorageClass") &&
    before.storageClassName === undefined &&
    spec.storageClassName
  ) {
    allowed = { ...allowed, storageClassName: spec.storageClassName };
  }
  return allowed;
}

/** A claim may ask for less only where it has not got it, and never for less than it has (KEP-1790). */
function shrinkProblems(spec: Loose, before: Loose, status: Loose, version: EmulatedVersion): FieldProblem[] {
  const [size, sizeBefore] = [spec.resources?.requests?.storage, before.resources?.requests?.storage];
  if (sizeBefore === undefined) return [];
  const wanted = parseQuantity(String(size ?? 0));
  if (wanted.compare(parseQuantity(String(sizeBefore))) >= 0) return [];
  const field = "spec.resources.requests.storage";
  if (!version.gate("RecoverVolumeExpansionFailure")) {
    return [forbiddenValue(field, "field can not be less than previous value")];
  }
  const has = status.capacity?.storage;
  if (has === undefined || wanted.compare(parseQuantity(String(has))) > 0) return [];
  return [forbiddenValue(field, "field can not be less than status.capacity")];
}

function attributesProblems(
  spec: Loose,
  before: Loose,
  bound: boolean,
  version: EmulatedVersion,
): FieldProblem[] {
  const [now, was] = [spec.volumeAttributesClassName, before.volumeAttributesClassName];
  if (!version.gate("VolumeAttributesClass") || now === was) return [];
  const field = "spec.volumeAttributesClassName";
  if (was !== undefined && now === undefined) {
    return [forbiddenValue(field, "update from non-nil value to nil is forbidden")];
  }
  if (was && now === "")
    return [forbiddenValue(field, "update from non-nil value to an empty string is forbidden")];
  return bound || was === undefined
    ? []
    : [forbiddenValue(field, "may not be changed before the claim is bound")];
}

function updateProblems(next: KubeObject, old: Stored, version: EmulatedVersion): readonly FieldProblem[] {
  const [spec, before] = [(next as LooseObject).spec ?? {}, (old as LooseObject).spec ?? {}];
  const { status = {} } = old as LooseObject;
  const bound = status.phase === "Bound";
  const problems: FieldProblem[] = [];
  if (!sameJson(spec, allowedSpec(spec, before, bound, version))) {
    const text = version.gate("VolumeAttributesClass") ? rule : rule120;
    problems.push(forbiddenValue("spec", text));
  }
  problems.push(...shrinkProblems(spec, before, status, version));
  problems.push(...attributesProblems(spec, before, bound, version));
  if (spec.volumeMode !== before.volumeMode) {
    problems.push(invalidValue("volumeMode", spec.volumeMode, immutable));
  }
  return problems;
}

const resizeStates = [
  "ControllerResizeInProgress",
  "ControllerResizeInfeasible",
  "NodeResizePending",
  "NodeResizeInProgress",
  "NodeResizeInfeasible",
];

/** What controllers and kubelets say of a claim's growth must make sense. */
function statusProblems(next: KubeObject, version: EmulatedVersion): FieldProblem[] {
  const {
    capacity = {},
    allocatedResources = {},
    allocatedResourceStatuses = {},
  } = (next as LooseObject).status ?? {};
  const problems: FieldProblem[] = [];
  for (const [key, value] of Object.entries(capacity as Loose)) {
    spendTime();
    if (parseQuantity(String(value)).sign() >= 0) continue;
    problems.push(
      invalidValue(
        `status.capacity[${key}]`,
        Number(parseQuantity(value).toBytes()),
        "must be a valid resource quantity",
      ),
    );
  }
  if (!version.gate("RecoverVolumeExpansionFailure")) return problems;
  for (const [key, state] of Object.entries(allocatedResourceStatuses as Loose)) {
    const at = `status.allocatedResourceStatuses[${key}]`;
    problems.push(...resourceKeyProblems(key, at));
    if (!resizeStates.includes(state)) problems.push(unsupportedValue(at, state, resizeStates));
  }
  for (const [key, amount] of Object.entries(allocatedResources as Loose)) {
    const at = `status.allocatedResources[${key}]`;
    problems.push(...resourceKeyProblems(key, at));
    if (parseQuantity(String(amount)).sign() < 0) {
      problems.push(invalidValue(at, amount, "must be greater than or equal to 0"));
    }
  }
  return problems;
}

function resourceKeyProblems(key: string, at: string): FieldProblem[] {
  const problems = qualifiedNameProblems(key).map((why) => invalidValue(at, key, why));
  if (problems.length > 0 || key === "storage") return problems;
  if (!key.includes("/"))
    return [invalidValue(at, key, "must be a standard resource type or fully qualified")];
  return /(^|\.)kubernetes\.io\//.test(key)
    ? [invalidValue(at, key, "must be an unprefixed or own resource")]
    : [];
}

/** Members of the status that the version, or a gate, does not keep. */
function keptStatus(status: Loose, version: EmulatedVersion): Loose {
  let kept = status;
  if (!version.gate("RecoverVolumeExpansionFailure")) {
    kept = without(without(kept, "allocatedResources"), "allocatedResourceStatuses");
  }
  if (!version.gate("VolumeAttributesClass")) {
    kept = without(without(kept, "currentVolumeAttributesClassName"), "modifyVolumeStatus");
  }
  return kept;
}

/** The kind PersistentVolumeClaim, as that version of Kubernetes has it. */
export const persistentVolumeClaim = (version: EmulatedVersion): Kind => ({
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
  prepareCreate: (object) => {
    const spec = normalizedSources((object as LooseObject).spec ?? {}, version);
    return { ...object, spec, status: { phase: "Pending" } } as KubeObject;
  },
  prepareUpdate: (next, old) =>
    withMember(next as LooseObject, "spec", (spec) =>
      normalizedSources(spec, version, (old as LooseObject).spec),
    ),
  prepareStatusUpdate: (next) =>
    withMember(next as LooseObject, "status", (status) => keptStatus(status, version)),
  validate: (object) => claimSpecProblems((object as LooseObject).spec ?? {}, "spec", version),
  validateUpdate: (next, old) => updateProblems(next, old, version),
  validateStatusUpdate: (next) => statusProblems(next, version),
});
