/** CSIStorageCapacity and VolumeAttributesClass (kubernetes pkg/apis/storage/validation). */
import { type KubeObject, parseQuantity, type Stored } from "@longshore/kube/basics";
import { type FieldProblem, forbiddenValue, invalidValue, requiredValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { subdomainProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import { immutable, type LooseObject } from "./shaping.ts";
import { driverNameProblems } from "./source-rules.ts";

const group = "storage.k8s.io";

function capacityProblems(object: KubeObject): FieldProblem[] {
  const { storageClassName = "", capacity, maximumVolumeSize } = object as LooseObject;
  const problems = subdomainProblems(storageClassName).map((why) =>
    invalidValue("storageClassName", storageClassName, why),
  );
  for (const [key, value] of Object.entries({ capacity, maximumVolumeSize })) {
    if (value !== undefined && parseQuantity(String(value)).sign() < 0) {
      problems.push(invalidValue(key, value, "must be greater than or equal to 0"));
    }
  }
  return problems;
}

/** What is measured stays; how much it is may change. */
function capacityUpdateProblems(next: KubeObject, old: Stored): FieldProblem[] {
  return ["nodeTopology", "storageClassName"].flatMap((key) => {
    const [now, before] = [(next as LooseObject)[key], (old as LooseObject)[key]];
    return sameJson(now, before) ? [] : [invalidValue(key, now ?? null, immutable)];
  });
}

/** CSIStorageCapacity. */
export const csiStorageCapacity: Kind = {
  group,
  versions: ["v1", "v1beta1"],
  kind: "CSIStorageCapacity",
  plural: "csistoragecapacities",
  namespaced: true,
  validate: capacityProblems,
  validateUpdate: capacityUpdateProblems,
};

/** Most parameters, and most bytes of them. */
const parametersMax = 512;
const parameterBytesMax = 256 * 1024;

function classProblems(object: KubeObject): FieldProblem[] {
  const { driverName = "", parameters } = object as LooseObject;
  const problems = driverNameProblems(driverName, "driverName");
  const entries = Object.entries((parameters ?? {}) as Record<string, string>);
  if (entries.length === 0) {
    problems.push(requiredValue("parameters", "must contain at least one key/value pair"));
  }
  if (entries.length > parametersMax) {
    const message = `Too many: ${entries.length}: must have at most ${parametersMax} items`;
    problems.push({ reason: "FieldValueTooMany", message, field: "parameters" });
  }
  let bytes = 0;
  for (const [key, value] of entries) {
    spendTime();
    if (key === "") problems.push(invalidValue("parameters", key, "field can not be empty"));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > parameterBytesMax) {
    const message = `Too long: may not be more than ${parameterBytesMax} bytes`;
    problems.push({ reason: "FieldValueTooLong", message, field: "parameters" });
  }
  return problems;
}

function classUpdateProblems(next: KubeObject, old: Stored): FieldProblem[] {
  const [now, before] = [next as LooseObject, old as LooseObject];
  const problems: FieldProblem[] = [];
  if (now.driverName !== before.driverName)
    problems.push(invalidValue("driverName", now.driverName, immutable));
  if (!sameJson(now.parameters, before.parameters)) {
    problems.push(forbiddenValue("parameters", "updates to parameters are forbidden."));
  }
  return problems;
}

/** VolumeAttributesClass. */
export const volumeAttributesClass: Kind = {
  group,
  versions: ["v1", "v1beta1"],
  kind: "VolumeAttributesClass",
  plural: "volumeattributesclasses",
  shortNames: ["vac"],
  namespaced: false,
  validate: classProblems,
  validateUpdate: classUpdateProblems,
};
