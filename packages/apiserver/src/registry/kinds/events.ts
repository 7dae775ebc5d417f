/**
 * Events: one table, two groups. The core group's form is stored; events.k8s.io shows the same objects under other
 * names (kubernetes pkg/apis/events/v1/conversion.go, pkg/apis/core/validation/events.go).
 */
import type { KubeObject } from "@longshore/kube";
import { type FieldProblem, invalidValue, requiredValue } from "../../api/errors.ts";
import type { Conversion, Kind } from "../../api/kind.ts";
import { qualifiedNameProblems } from "../../api/names.ts";
import { type Loose, type LooseObject, withDefaults } from "./shaping.ts";

const text = (value: unknown): string => (value === undefined ? "" : String(value));
const aboutMembers = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

function coreFields(object: KubeObject): Readonly<Record<string, string>> {
  const { involvedObject = {}, reason, type, source, reportingComponent } = object as LooseObject;
  const fields: Record<string, string> = {
    reason: text(reason),
    type: text(type),
    source: text(source?.component ?? reportingComponent),
    reportingComponent: text(reportingComponent),
  };
  for (const key of aboutMembers) fields[`involvedObject.${key}`] = text(involvedObject[key]);
  return fields;
}

function groupFields(object: KubeObject): Readonly<Record<string, string>> {
  const { involvedObject = {}, reason, type, reportingComponent } = object as LooseObject;
  const fields: Record<string, string> = {
    reason: text(reason),
    type: text(type),
    reportingController: text(reportingComponent),
  };
  for (const key of aboutMembers) fields[`regarding.${key}`] = text(involvedObject[key]);
  return fields;
}

/** Events of cluster-scoped objects live in the default namespace, others in their object's. */
function placeProblems(object: KubeObject): FieldProblem[] {
  const { involvedObject = {}, metadata } = object as LooseObject;
  const about = involvedObject.namespace ?? "";
  const where = metadata?.namespace;
  if (about === "" ? where === "default" || where === "kube-system" : about === where) return [];
  return [invalidValue("involvedObject.namespace", about, "does not match event.namespace")];
}

const noteBytesMax = 1024;
const wordMax = 128;

/** Events that say when they happened were written in the new way, and are held to more (legacyValidateEvent). */
function eventProblems(object: KubeObject): FieldProblem[] {
  const event = object as LooseObject;
  if (event.eventTime === undefined) return placeProblems(object);
  const problems: FieldProblem[] = [];
  if (!event.involvedObject?.namespace && object.metadata?.namespace !== "kube-system") {
    problems.push(invalidValue("involvedObject.namespace", "", "does not match event.namespace"));
  }
  const controller = event.reportingComponent ?? "";
  if (controller === "") problems.push(requiredValue("reportingController"));
  problems.push(
    ...qualifiedNameProblems(controller).map((why) => invalidValue("reportingController", controller, why)),
  );
  for (const key of ["reportingInstance", "action", "reason"]) {
    if (!event[key]) problems.push(requiredValue(key));
    else if (event[key].length > wordMax) {
      // The reference shows the type's name for the value.
      problems.push(invalidValue(key, "", `can have at most ${wordMax} characters`));
    }
  }
  if (Buffer.byteLength(event.message ?? "") > noteBytesMax) {
    problems.push(invalidValue("message", "", `can have at most ${noteBytesMax} characters`));
  }
  return problems;
}

const coreDefaults = (object: KubeObject): KubeObject =>
  withDefaults(object as LooseObject, { source: {}, reportingComponent: "", reportingInstance: "" });

/** Event of the core group. */
export const event: Kind = {
  group: "",
  versions: ["v1"],
  kind: "Event",
  plural: "events",
  shortNames: ["ev"],
  namespaced: true,
  createsOnUpdate: true,
  anyFinalizers: true,
  fields: coreFields,
  defaults: coreDefaults,
  validate: eventProblems,
};

/** Members that are the same under two names: that of events.k8s.io, and that of the core group. */
const renamed: readonly (readonly [ours: string, core: string])[] = [
  ["note", "message"],
  ["regarding", "involvedObject"],
  ["reportingController", "reportingComponent"],
  ["deprecatedSource", "source"],
  ["deprecatedFirstTimestamp", "firstTimestamp"],
  ["deprecatedLastTimestamp", "lastTimestamp"],
  ["deprecatedCount", "count"],
];

function rename(object: Loose, from: 0 | 1): Loose {
  const result: Loose = { ...object };
  for (const pair of renamed) delete result[pair[from]];
  for (const pair of renamed) {
    const value = object[pair[from]];
    if (value !== undefined && value !== null) result[pair[1 - from] as string] = value;
  }
  return result;
}

const conversion: Conversion = {
  toStored: (object) => withDefaults(rename(object, 0), { involvedObject: {}, source: {} }) as KubeObject,
  fromStored: (object) => withoutEmpty(rename(object as LooseObject, 1)) as KubeObject,
};

/** What events.k8s.io leaves out where it says nothing; the core group always has it. */
function withoutEmpty(object: Loose): Loose {
  const result = { ...object };
  for (const key of ["reportingController", "reportingInstance", "note"])
    if (result[key] === "") delete result[key];
  return withDefaults(result, { regarding: {}, deprecatedSource: {} });
}

/** Events of the group that are new must say when and of which of two types they are (ValidateEventCreate). */
function newEventProblems(object: KubeObject): FieldProblem[] {
  const { eventTime, type = "" } = object as LooseObject;
  const problems: FieldProblem[] = [];
  if (eventTime === undefined) problems.push(requiredValue("eventTime"));
  if (type !== "Normal" && type !== "Warning") {
    problems.push(invalidValue("type", "", `has invalid value: ${type}`));
  }
  return problems;
}

/** Event of events.k8s.io. */
export const groupEvent: Kind = {
  group: "events.k8s.io",
  versions: ["v1", "v1beta1"],
  kind: "Event",
  plural: "events",
  shortNames: ["ev"],
  namespaced: true,
  createsOnUpdate: true,
  anyFinalizers: true,
  storedAs: { group: "", version: "v1", plural: "events" },
  conversion,
  fields: groupFields,
  defaults: coreDefaults,
  validate: eventProblems,
  validateCreate: newEventProblems,
};
