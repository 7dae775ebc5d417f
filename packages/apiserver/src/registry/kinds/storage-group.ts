/** The kinds of storage.k8s.io (kubernetes pkg/registry/storage, pkg/apis/storage/validation). */
import type { KubeObject, Stored } from "@longshore/kube";
import { ByJson } from "../../api/by-json.ts";
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  tooLong,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { qualifiedNameProblems, subdomainProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { inlineVolumeSpecDefaults, volumeSpecProblems } from "./persistent-volume.ts";
import {
  immutable,
  type Loose,
  type LooseObject,
  subdomainValue,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";
import { driverNameProblems } from "./source-rules.ts";

const group = "storage.k8s.io";
const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};
/** The reference checks kinds of this group twice, and lists each cause twice. */
const twice = (problems: readonly FieldProblem[]) => [...problems, ...problems];

const bindingModes = ["Immediate", "WaitForFirstConsumer"];
const reclaimPolicies = ["Delete", "Retain"];

function validateClass(object: KubeObject): readonly FieldProblem[] {
  const { provisioner, parameters = {}, reclaimPolicy, volumeBindingMode } = object as LooseObject;
  const problems: FieldProblem[] = [];
  if (!provisioner) problems.push(requiredValue("provisioner"));
  else
    problems.push(
      ...qualifiedNameProblems(provisioner.toLowerCase()).map((p) =>
        invalidValue("provisioner", provisioner, p),
      ),
    );
  if (Object.hasOwn(parameters, "")) {
    problems.push(invalidValue("parameters", "", "field can not be empty."));
  }
  if (reclaimPolicy && !reclaimPolicies.includes(reclaimPolicy)) {
    problems.push(unsupportedValue("reclaimPolicy", reclaimPolicy, reclaimPolicies));
  }
  if (!bindingModes.includes(volumeBindingMode)) {
    problems.push(unsupportedValue("volumeBindingMode", volumeBindingMode, bindingModes));
  }
  return [...problems, ...topologyProblems((object as LooseObject).allowedTopologies ?? [])];
}

/** Each term, each key in a term, and each value of a key is there once. */
function topologyProblems(terms: readonly Loose[]): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const seen = new ByJson<true>();
  for (const [i, term] of terms.entries()) {
    spendTime();
    const at = `allowedTopologies[${i}].matchLabelExpressions`;
    const keys: Record<string, readonly string[]> = {};
    for (const [j, { key = "", values = [] }] of ((term.matchLabelExpressions ?? []) as Loose[]).entries()) {
      if (values.length === 0) problems.push(requiredValue(`${at}[${j}].values`));
      const before = new Set<string>();
      for (const [k, value] of (values as readonly string[]).entries()) {
        if (before.has(value)) problems.push(duplicateValue(`${at}[${j}].values[${k}]`, value));
        before.add(value);
      }
      problems.push(...qualifiedNameProblems(key).map((why) => invalidValue(`${at}[${j}].key`, key, why)));
      if (Object.hasOwn(keys, key)) problems.push(duplicateValue(`${at}[${j}].key`, key));
      keys[key] = [...new Set(values as readonly string[])].sort();
    }
    const sorted = Object.fromEntries(Object.entries(keys).sort(([a], [b]) => (a < b ? -1 : 1)));
    // A term without keys is its own duplicate, as in the reference.
    const empty = Object.keys(sorted).length === 0;
    if (empty || seen.has(sorted)) problems.push(duplicateValue(at, ""));
    seen.set(sorted, true);
  }
  return problems;
}

function validateClassUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const [now, before] = [next as LooseObject, old as LooseObject];
  const problems: FieldProblem[] = [];
  for (const key of ["parameters", "provisioner", "reclaimPolicy"]) {
    if (!sameJson(now[key], before[key]))
      problems.push(forbiddenValue(key, `updates to ${key} are forbidden.`));
  }
  if (now.volumeBindingMode !== before.volumeBindingMode) {
    problems.push(invalidValue("volumeBindingMode", now.volumeBindingMode, immutable));
  }
  return problems;
}

/** StorageClass. */
export const storageClass: Kind = {
  group,
  versions: ["v1", "v1beta1"],
  kind: "StorageClass",
  plural: "storageclasses",
  shortNames: ["sc"],
  namespaced: false,
  answersDeleted: true,
  defaults: (object) =>
    withDefaults(object as LooseObject, { reclaimPolicy: "Delete", volumeBindingMode: "Immediate" }),
  validate: validateClass,
  validateUpdate: validateClassUpdate,
};

/** What is asked of every write (ValidateVolumeAttachment). */
function attachmentProblems(object: KubeObject, version: EmulatedVersion): FieldProblem[] {
  const { attacher, nodeName, source = {} } = spec(object);
  const problems: FieldProblem[] = attacher ? [] : [requiredValue("spec.attacher")];
  const { persistentVolumeName, inlineVolumeSpec } = source as Loose;
  const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (persistentVolumeName === undefined && inlineVolumeSpec === undefined) {
    problems.push(requiredValue("spec.source", one));
  } else if (persistentVolumeName !== undefined && inlineVolumeSpec !== undefined) {
    problems.push(forbiddenValue("spec.source", one));
  } else if (persistentVolumeName === "") {
    const why = "must specify non empty persistentVolumeName";
    problems.push(requiredValue("spec.source.persistentVolumeName", why));
  } else if (inlineVolumeSpec !== undefined) {
    const at = "spec.source.inlineVolumeSpec";
    problems.push(...volumeSpecProblems(inlineVolumeSpec, at, { version, name: "", inline: true }));
  }
  problems.push(...subdomainValue("spec.nodeName", nodeName));
  for (const key of ["attachError", "detachError"]) {
    const message = (object as LooseObject).status?.[key]?.message ?? "";
    if (Buffer.byteLength(message) <= errorBytesMax) continue;
    problems.push(tooLong(`status.${key}.message`, errorBytesMax));
  }
  return problems;
}

/** Most bytes of what an attacher says of a failure. */
const errorBytesMax = 1024 * 1024;

/** What is asked of new objects beyond (ValidateVolumeAttachmentV1). */
function newAttachmentProblems(object: KubeObject): FieldProblem[] {
  const { attacher, source = {} } = spec(object);
  const problems = driverNameProblems(attacher, "spec.attacher");
  const { persistentVolumeName: name } = source as Loose;
  if (name !== undefined) problems.push(...subdomainValue("spec.source.persistentVolumeName", name));
  return problems;
}

function attachmentUpdateProblems(next: KubeObject, old: Stored): FieldProblem[] {
  return sameJson(spec(next), spec(old)) ? [] : [invalidValue("spec", spec(next), immutable)];
}

/** A volume that is written out in the attachment is known with the migration to CSI only. */
function withoutInline(object: KubeObject): KubeObject {
  return withMember(object as LooseObject, "spec", (s) =>
    withMember(s, "source", (source) => without(source, "inlineVolumeSpec")),
  );
}

/** VolumeAttachment. */
export const volumeAttachment = (version: EmulatedVersion): Kind => ({
  group,
  versions: ["v1", "v1beta1"],
  kind: "VolumeAttachment",
  plural: "volumeattachments",
  namespaced: false,
  statusSubresource: true,
  statusKeepsMetadata: true,
  updateNeedsVersion: true,
  answersDeleted: true,
  defaults: (object) =>
    withMember(
      withMember(object as LooseObject, "status", (status) => withDefaults(status, { attached: false })),
      "spec",
      (s) =>
        withMember(s, "source", (source) => withMember(source, "inlineVolumeSpec", inlineVolumeSpecDefaults)),
    ),
  prepareCreate: (object) => {
    const known = version.gate("CSIMigration") ? object : withoutInline(object);
    return { ...known, status: { attached: false } } as KubeObject;
  },
  prepareUpdate: (next, old) =>
    version.gate("CSIMigration") || spec(old).source?.inlineVolumeSpec !== undefined
      ? next
      : withoutInline(next),
  validate: (object) => attachmentProblems(object, version),
  validateCreate: newAttachmentProblems,
  validateUpdate: attachmentUpdateProblems,
});

function driverProblems(driver: Loose, at: string): FieldProblem[] {
  const problems = driverNameProblems(driver.name, `${at}.name`);
  if (!driver.nodeID) problems.push(requiredValue(`${at}.nodeID`));
  else if (driver.nodeID.length > 128) {
    problems.push(invalidValue(`${at}.nodeID`, driver.nodeID, "must be 128 characters or less"));
  }
  if (driver.allocatable?.count !== undefined && driver.allocatable.count < 0) {
    const why = "must be greater than or equal to 0";
    problems.push(invalidValue(`${at}.allocatable.count`, driver.allocatable.count, why));
  }
  const keys: readonly string[] = driver.topologyKeys ?? [];
  const seen = new Set<string>();
  let shown: string | undefined;
  for (const key of keys) {
    spendTime();
    if (key === "") problems.push(requiredValue(at));
    if (seen.has(key)) problems.push(duplicateValue(at, key));
    seen.add(key);
    for (const why of qualifiedNameProblems(key)) {
      // Written once: each of the keys that are wrong shows the whole list.
      shown ??= `[]string{${keys.map((k) => JSON.stringify(k)).join(", ")}}`;
      problems.push({ reason: "FieldValueInvalid", message: `Invalid value: ${shown}: ${why}`, field: at });
    }
  }
  return problems;
}

function csiNodeProblems(object: KubeObject, version: EmulatedVersion): readonly FieldProblem[] {
  const drivers: readonly Loose[] = spec(object).drivers ?? [];
  const names = new Set<unknown>();
  const problems = drivers.flatMap((driver, i) => {
    spendTime();
    const at = `spec.drivers[${i}]`;
    const repeated = names.has(driver.name);
    names.add(driver.name);
    return [...(repeated ? [duplicateValue(`${at}.name`, driver.name)] : []), ...driverProblems(driver, at)];
  });
  return version.has("storageCausesTwice") ? twice(problems) : problems;
}

/** A driver that stays may only gain an allocatable count. */
function csiNodeUpdateProblems(
  next: KubeObject,
  old: Stored,
  version: EmulatedVersion,
): readonly FieldProblem[] {
  const before: readonly Loose[] = spec(old).drivers ?? [];
  const drivers: readonly Loose[] = spec(next).drivers ?? [];
  // Of two of one name, the first.
  const byName = new Map(before.toReversed().map((driver) => [driver.name, driver]));
  return drivers.flatMap((driver) => {
    const same = byName.get(driver.name);
    if (same === undefined || sameJson(driver, same)) return [];
    if (
      (same.allocatable?.count === undefined || version.gate("MutableCSINodeAllocatableCount")) &&
      sameJson(without(driver, "allocatable"), without(same, "allocatable"))
    )
      return [];
    return [invalidValue("CSINodeDriver", driver, immutable)];
  });
}

/** CSINode. */
export const csiNode = (version: EmulatedVersion): Kind => ({
  group,
  versions: ["v1", "v1beta1"],
  kind: "CSINode",
  plural: "csinodes",
  namespaced: false,
  updateNeedsVersion: true,
  answersDeleted: true,
  validate: (object) => csiNodeProblems(object, version),
  validateUpdate: (next, old) => csiNodeUpdateProblems(next, old, version),
});

const lifecycleModes = ["Persistent", "Ephemeral"];
const fsGroupPolicies = ["File", "None", "ReadWriteOnceWithFSType"];

function csiDriverProblems(object: KubeObject, version: EmulatedVersion): FieldProblem[] {
  const {
    volumeLifecycleModes = [],
    fsGroupPolicy,
    nodeAllocatableUpdatePeriodSeconds: period,
  } = spec(object);
  const name = object.metadata?.name ?? "";
  const problems =
    name === "" ? [] : subdomainProblems(name).map((why) => invalidValue("metadata.name", name, why));
  const more: FieldProblem[] = volumeLifecycleModes
    .filter((mode: string) => !lifecycleModes.includes(mode))
    .map((mode: string) => unsupportedValue("spec.volumeLifecycleModes", mode, lifecycleModes));
  if (fsGroupPolicy !== undefined && !fsGroupPolicies.includes(fsGroupPolicy)) {
    more.push(unsupportedValue("spec.fsGroupPolicy", fsGroupPolicy, fsGroupPolicies));
  }
  more.push(...tokenRequestProblems(spec(object).tokenRequests ?? []));
  if (period !== undefined && period < allocatablePeriodSecondsMin) {
    const why = `must be greater than or equal to ${allocatablePeriodSecondsMin} seconds`;
    more.push(invalidValue("spec.nodeAllocatableUpdatePeriodSeconds", period, why));
  }
  return [...problems, ...(version.has("storageCausesTwice") ? twice(more) : more)];
}

/** How often a driver may be asked at most how many volumes a node can have. */
const allocatablePeriodSecondsMin = 10;

const tokenSecondsMin = 600;
const tokenSecondsMax = 2 ** 32;

function tokenRequestProblems(requests: readonly Loose[]): FieldProblem[] {
  const audiences = new Set<string>();
  return requests.flatMap(({ audience = "", expirationSeconds: seconds }, i) => {
    spendTime();
    const problems: FieldProblem[] = [];
    if (audiences.has(audience)) problems.push(duplicateValue(`spec.tokenRequests[${i}].audience`, audience));
    audiences.add(audience);
    const field = `spec.tokenRequests[${i}].expirationSeconds`;
    if (seconds < tokenSecondsMin) {
      problems.push(invalidValue(field, seconds, "may not specify a duration less than 10 minutes"));
    }
    if (seconds > tokenSecondsMax) {
      problems.push(invalidValue(field, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    return problems;
  });
}

/** In 1.20 the whole spec stays; later, what kubelets and attachers have relied on. */
function csiDriverUpdateProblems(next: KubeObject, old: Stored, version: EmulatedVersion): FieldProblem[] {
  if (!version.has("csiDriverSpecMutable")) {
    return sameJson(spec(next), spec(old)) ? [] : [invalidValue("spec", spec(next), immutable)];
  }
  const fixed = ["attachRequired", "volumeLifecycleModes"];
  if (!version.has("csiDriverMountOptionsMutable")) fixed.push("podInfoOnMount", "fsGroupPolicy");
  return fixed.flatMap((key) =>
    sameJson(spec(next)[key], spec(old)[key])
      ? []
      : // The name is the reference's.
        [
          invalidValue(
            `spec.${key === "attachRequired" ? "attachedRequired" : key}`,
            spec(next)[key],
            immutable,
          ),
        ],
  );
}

/** Members of a CSIDriver that a gate hides, and what they are by default. */
const gatedMembers: readonly (readonly [member: string, gate: string, by: Loose])[] = [
  ["storageCapacity", "CSIStorageCapacity", { storageCapacity: false }],
  ["requiresRepublish", "CSIServiceAccountToken", { requiresRepublish: false }],
  ["tokenRequests", "CSIServiceAccountToken", {}],
  ["fsGroupPolicy", "CSIVolumeFSGroupPolicy", { fsGroupPolicy: "ReadWriteOnceWithFSType" }],
  ["seLinuxMount", "SELinuxMountReadWriteOncePod", { seLinuxMount: false }],
  ["nodeAllocatableUpdatePeriodSeconds", "MutableCSINodeAllocatableCount", {}],
];

function csiDriverSpecDefaults(given: Loose, version: EmulatedVersion): Loose {
  let result = given;
  let defaults: Loose = { attachRequired: true, podInfoOnMount: false, volumeLifecycleModes: ["Persistent"] };
  for (const [member, gate, by] of gatedMembers) {
    if (version.gate(gate)) defaults = { ...defaults, ...by };
    else result = without(result, member);
  }
  if ((result.volumeLifecycleModes ?? []).length === 0) result = without(result, "volumeLifecycleModes");
  return withDefaults(result, defaults);
}

/** CSIDriver. */
export const csiDriver = (version: EmulatedVersion): Kind => ({
  group,
  versions: ["v1", "v1beta1"],
  kind: "CSIDriver",
  plural: "csidrivers",
  namespaced: false,
  updateNeedsVersion: true,
  answersDeleted: true,
  defaults: (object) =>
    withMember(withDefaults(object as LooseObject, { spec: {} }), "spec", (given) =>
      csiDriverSpecDefaults(given, version),
    ),
  // While the spec could not change, updates were not checked beyond that.
  validate: (object) => (version.has("csiDriverSpecMutable") ? csiDriverProblems(object, version) : []),
  validateCreate: (object) => (version.has("csiDriverSpecMutable") ? [] : csiDriverProblems(object, version)),
  validateUpdate: (next, old) => csiDriverUpdateProblems(next, old, version),
});
