/** The kinds of storage.k8s.io (kubernetes pkg/registry/storage, pkg/apis/storage/validation). */
import type { KubeObject, Stored } from "@longshore/kube";
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { sameJson } from "../../api/own.ts";
import type { Kind } from "../kind.ts";
import { qualifiedNameProblems } from "../names.ts";
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
import { driverNameProblems } from "./volume-sources.ts";

const group = "storage.k8s.io";
const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};
/** The reference checks kinds of this group twice, and lists each cause twice. */
const twice = (problems: readonly FieldProblem[]) => [...problems, ...problems];

const bindingModes = ["Immediate", "WaitForFirstConsumer"];
const reclaimPolicies = ["Delete", "Retain"];

function validateClass(object: KubeObject): readonly FieldProblem[] {
  const { provisioner, reclaimPolicy, volumeBindingMode } = object as LooseObject;
  const problems: FieldProblem[] = [];
  if (!provisioner) problems.push(requiredValue("provisioner"));
  else
    problems.push(
      ...qualifiedNameProblems(provisioner.toLowerCase()).map((p) =>
        invalidValue("provisioner", provisioner, p),
      ),
    );
  if (!reclaimPolicies.includes(reclaimPolicy)) {
    problems.push(unsupportedValue("reclaimPolicy", reclaimPolicy, reclaimPolicies));
  }
  if (!bindingModes.includes(volumeBindingMode)) {
    problems.push(unsupportedValue("volumeBindingMode", volumeBindingMode, bindingModes));
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

function validateAttachment(object: KubeObject): readonly FieldProblem[] {
  const { attacher, nodeName, source = {} } = spec(object);
  const problems: FieldProblem[] = attacher ? [] : [requiredValue("spec.attacher")];
  const { persistentVolumeName, inlineVolumeSpec } = source as Loose;
  const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  const named = persistentVolumeName !== undefined && persistentVolumeName !== "";
  if (!named && inlineVolumeSpec === undefined) problems.push(requiredValue("spec.source", one));
  if (named && inlineVolumeSpec !== undefined) problems.push(forbiddenValue("spec.source", one));
  if (named) problems.push(...subdomainValue("spec.source.persistentVolumeName", persistentVolumeName));
  else if (inlineVolumeSpec !== undefined) {
    problems.push(...volumeSpecProblems(inlineVolumeSpec, "spec.source.inlineVolumeSpec", true));
  }
  problems.push(...subdomainValue("spec.nodeName", nodeName));
  return [...problems, ...driverNameProblems(attacher, "spec.attacher")];
}

function validateAttachmentUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  return sameJson(spec(next), spec(old)) ? [] : [invalidValue("spec", spec(next), immutable)];
}

/** VolumeAttachment. */
export const volumeAttachment: Kind = {
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
  prepareCreate: (object) => ({ ...object, status: { attached: false } }) as KubeObject,
  validate: validateAttachment,
  validateUpdate: validateAttachmentUpdate,
};

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
  for (const [i, key] of keys.entries()) {
    if (keys.indexOf(key) < i) problems.push(duplicateValue(at, key));
    for (const why of qualifiedNameProblems(key)) {
      const shown = `[]string{${keys.map((k) => JSON.stringify(k)).join(", ")}}`;
      problems.push({ reason: "FieldValueInvalid", message: `Invalid value: ${shown}: ${why}`, field: at });
    }
  }
  return problems;
}

function validateCsiNode(object: KubeObject): readonly FieldProblem[] {
  const drivers: readonly Loose[] = spec(object).drivers ?? [];
  const problems = drivers.flatMap((driver, i) => {
    const at = `spec.drivers[${i}]`;
    const repeated = drivers.findIndex((other) => other.name === driver.name) < i;
    return [...(repeated ? [duplicateValue(`${at}.name`, driver.name)] : []), ...driverProblems(driver, at)];
  });
  return twice(problems);
}

/** A driver that stays may only gain an allocatable count. */
function validateCsiNodeUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const before: readonly Loose[] = spec(old).drivers ?? [];
  const drivers: readonly Loose[] = spec(next).drivers ?? [];
  return drivers.flatMap((driver) => {
    const same = before.find((other) => other.name === driver.name);
    if (same === undefined || sameJson(driver, same)) return [];
    if (
      same.allocatable?.count === undefined &&
      sameJson(without(driver, "allocatable"), without(same, "allocatable"))
    )
      return [];
    return [invalidValue("CSINodeDriver", driver, immutable)];
  });
}

/** CSINode. */
export const csiNode: Kind = {
  group,
  versions: ["v1", "v1beta1"],
  kind: "CSINode",
  plural: "csinodes",
  namespaced: false,
  updateNeedsVersion: true,
  answersDeleted: true,
  validate: validateCsiNode,
  validateUpdate: validateCsiNodeUpdate,
};

const lifecycleModes = ["Persistent", "Ephemeral"];
const fsGroupPolicies = ["File", "None", "ReadWriteOnceWithFSType"];

function validateCsiDriver(object: KubeObject): readonly FieldProblem[] {
  const { volumeLifecycleModes = [], fsGroupPolicy } = spec(object);
  const problems: FieldProblem[] = [];
  const name = object.metadata?.name ?? "";
  if (name !== "" && name.length <= 63) {
    problems.push(
      ...driverNameProblems(name, "metadata.name").filter(({ reason }) => reason === "FieldValueInvalid"),
    );
  }
  const modes: FieldProblem[] = volumeLifecycleModes
    .filter((mode: string) => !lifecycleModes.includes(mode))
    .map((mode: string) => unsupportedValue("spec.volumeLifecycleModes", mode, lifecycleModes));
  if (fsGroupPolicy !== undefined && !fsGroupPolicies.includes(fsGroupPolicy)) {
    modes.push(unsupportedValue("spec.fsGroupPolicy", fsGroupPolicy, fsGroupPolicies));
  }
  return [...problems, ...twice(modes)];
}

function validateCsiDriverUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  return ["attachRequired", "podInfoOnMount", "volumeLifecycleModes", "fsGroupPolicy"].flatMap((key) =>
    sameJson(spec(next)[key], spec(old)[key])
      ? []
      : [invalidValue(`spec.${key}`, spec(next)[key], immutable)],
  );
}

/** CSIDriver. Members behind features that 1.20 has switched off are dropped. */
export const csiDriver: Kind = {
  group,
  versions: ["v1", "v1beta1"],
  kind: "CSIDriver",
  plural: "csidrivers",
  namespaced: false,
  answersDeleted: true,
  defaults: (object) =>
    withMember(withDefaults(object as LooseObject, { spec: {} }), "spec", (given) => {
      const known = without(without(without(given, "storageCapacity"), "tokenRequests"), "requiresRepublish");
      return withDefaults(known, {
        attachRequired: true,
        podInfoOnMount: false,
        volumeLifecycleModes: ["Persistent"],
        fsGroupPolicy: "ReadWriteOnceWithFSType",
      });
    }),
  validate: validateCsiDriver,
  validateUpdate: validateCsiDriverUpdate,
};
