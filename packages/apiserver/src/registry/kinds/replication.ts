/** PodTemplate, ReplicationController and ControllerRevision (kubernetes pkg/apis/core, pkg/apis/apps). */
import type { KubeObject, Stored } from "@longshore/kube";
import { type FieldProblem, invalidValue, requiredValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { sameJson } from "../../api/own.ts";
import { podSpecDefaults, podSpecProblems } from "./pod-spec-problems.ts";
import { immutable, type Loose, type LooseObject, withDefaults, withMember } from "./shaping.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};
const templateDefaults = (template: Loose): Loose =>
  withMember(withDefaults(template, { spec: {} }), "spec", podSpecDefaults);

/** PodTemplate. */
export const podTemplate: Kind = {
  group: "",
  versions: ["v1"],
  kind: "PodTemplate",
  plural: "podtemplates",
  namespaced: true,
  countsGenerations: true,
  answersDeleted: true,
  defaults: (object) => withMember(object as LooseObject, "template", templateDefaults),
  validate: (object) => podSpecProblems((object as LooseObject).template?.spec ?? {}, "template.spec"),
};

/** What a controller does not say, its template says: labels and selector are the template's labels. */
function controllerDefaults(object: KubeObject): KubeObject {
  const filled = withMember(object as LooseObject, "spec", (given) =>
    withMember(withDefaults(given, { replicas: 1 }), "template", templateDefaults),
  );
  const labels = spec(filled).template?.metadata?.labels;
  if (labels === undefined || Object.keys(labels).length === 0) return filled;
  const { selector } = spec(filled);
  const own = filled.metadata?.labels;
  return {
    ...filled,
    ...(own === undefined || Object.keys(own).length === 0
      ? { metadata: { ...filled.metadata, labels } }
      : {}),
    ...(selector === undefined ? { spec: { ...spec(filled), selector: labels } } : {}),
  } as KubeObject;
}

function controllerProblems(object: KubeObject): FieldProblem[] {
  const { selector = {}, template, replicas, minReadySeconds } = spec(object);
  const problems: FieldProblem[] = [];
  if (minReadySeconds < 0) {
    problems.push(
      invalidValue("spec.minReadySeconds", minReadySeconds, "must be greater than or equal to 0"),
    );
  }
  if (Object.keys(selector).length === 0) problems.push(requiredValue("spec.selector"));
  if (replicas < 0)
    problems.push(invalidValue("spec.replicas", replicas, "must be greater than or equal to 0"));
  if (template === undefined) return [...problems, requiredValue("spec.template")];
  const labels = template.metadata?.labels ?? {};
  if (Object.entries(selector).some(([key, value]) => labels[key] !== value)) {
    problems.push(
      invalidValue("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
    );
  }
  return [...problems, ...podSpecProblems(template.spec ?? {}, "spec.template.spec")];
}

/** ReplicationController. */
export const replicationController: Kind = {
  group: "",
  versions: ["v1"],
  kind: "ReplicationController",
  orphansByDefault: ["v1"],
  plural: "replicationcontrollers",
  shortNames: ["rc"],
  categories: ["all"],
  namespaced: true,
  statusSubresource: true,
  countsGenerations: true,
  subresources: {
    scale: { group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get", "patch", "update"] },
  },
  fields: (o) => ({ "status.replicas": String((o as LooseObject).status?.replicas ?? 0) }),
  defaults: controllerDefaults,
  prepareCreate: (object) => ({ ...object, status: { replicas: 0 } }) as KubeObject,
  validate: controllerProblems,
};

function revisionUpdateProblems(next: KubeObject, old: Stored): FieldProblem[] {
  const [data, before] = [(next as LooseObject).data, (old as LooseObject).data];
  return sameJson(data, before) ? [] : [invalidValue("data", data, immutable)];
}

/** ControllerRevision: what a StatefulSet or DaemonSet was, kept to go back to. */
export const controllerRevision: Kind = {
  group: "apps",
  versions: ["v1"],
  kind: "ControllerRevision",
  plural: "controllerrevisions",
  namespaced: true,
  defaults: (object) => withDefaults(object as LooseObject, { revision: 0 }),
  validate: (object) => {
    const { revision, data } = object as LooseObject;
    return [
      ...(revision < 0 ? [invalidValue("revision", revision, "must be greater than or equal to 0")] : []),
      ...(data === undefined ? [requiredValue("data", "data is mandatory")] : []),
    ];
  },
  validateUpdate: revisionUpdateProblems,
};
