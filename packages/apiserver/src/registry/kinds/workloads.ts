/** The kinds of apps/v1 (kubernetes pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation). */
import { type KubeObject, labelSelectorMatches, type Stored } from "@longshore/kube";
import { type FieldProblem, forbiddenValue, invalidValue, requiredValue } from "../../api/errors.ts";
import { sameJson } from "../../api/own.ts";
import type { Kind } from "../kind.ts";
import { claimSpecDefaults } from "./persistent-volume-claim.ts";
import { podSpecDefaults, podSpecProblems } from "./pod-spec.ts";
import {
  immutable,
  type Loose,
  type LooseObject,
  mapItems,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};

function templateDefaults(given: Loose): Loose {
  return withMember(withDefaults(given, { template: {} }), "template", (template) =>
    withMember(withDefaults(template, { spec: {} }), "spec", podSpecDefaults),
  );
}

/** Problems that all workloads share: a selector that chooses the template's pods, and a sound template. */
function workloadProblems(object: KubeObject): FieldProblem[] {
  const { selector, template = {}, replicas } = spec(object);
  const problems: FieldProblem[] = [];
  if (replicas !== undefined && replicas < 0) {
    problems.push(invalidValue("spec.replicas", replicas, "must be greater than or equal to 0"));
  }
  if (selector === undefined) problems.push(requiredValue("spec.selector"));
  const labels = template.metadata?.labels ?? {};
  if (selector === undefined || !chooses(selector, labels)) {
    problems.push(
      invalidValue("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
    );
  }
  // A StatefulSet's template may mount volumes that only its claim templates bring; 1.20 leaves it to the pods.
  if (object.kind === "StatefulSet") return problems;
  return [...problems, ...podSpecProblems(template.spec ?? {}, "spec.template.spec")];
}

function chooses(selector: Loose, labels: Readonly<Record<string, string>>): boolean {
  if (Object.keys(selector).length === 0) return false;
  try {
    return labelSelectorMatches(selector, labels);
  } catch {
    return false;
  }
}

function workload(kind: string, plural: string, shortName: string, rest: Partial<Kind>): Kind {
  return {
    group: "apps",
    versions: ["v1"],
    kind,
    plural,
    shortNames: [shortName],
    categories: ["all"],
    namespaced: true,
    statusSubresource: true,
    countsGenerations: true,
    ...(plural === "daemonsets"
      ? {}
      : {
          subresources: {
            scale: { group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get", "patch", "update"] },
          },
        }),
    ...rest,
  };
}

const dropStatus =
  (status: Loose) =>
  (object: KubeObject): KubeObject =>
    ({ ...object, status }) as KubeObject;

const selectorIsFixed = (next: KubeObject, old: Stored): readonly FieldProblem[] =>
  sameJson(spec(next).selector, spec(old).selector)
    ? []
    : [invalidValue("spec.selector", spec(next).selector, immutable)];

/** What may be changed of a StatefulSet. */
const changeable = ["replicas", "template", "updateStrategy"];

function validateStatefulSet(object: KubeObject): readonly FieldProblem[] {
  const { podManagementPolicy } = spec(object);
  const problems = workloadProblems(object);
  if (!["OrderedReady", "Parallel"].includes(podManagementPolicy)) {
    const why = "must be 'OrderedReady' or 'Parallel'";
    problems.unshift(invalidValue("spec.podManagementPolicy", podManagementPolicy, why));
  }
  return problems;
}

function validateStatefulSetUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const fixed = (o: KubeObject) => changeable.reduce((s, key) => without(s, key), spec(o));
  if (sameJson(fixed(next), fixed(old))) return [];
  const why =
    "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden";
  return [forbiddenValue("spec", why)];
}

function statefulSetDefaults(given: Loose): Loose {
  const filled = withDefaults(templateDefaults(given), {
    replicas: 1,
    podManagementPolicy: "OrderedReady",
    revisionHistoryLimit: 10,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  });
  return withMember(filled, "volumeClaimTemplates", (claims) =>
    mapItems(claims, (claim) =>
      withMember(
        withDefaults(claim, {
          kind: "PersistentVolumeClaim",
          apiVersion: "v1",
          status: { phase: "Pending" },
        }),
        "spec",
        claimSpecDefaults,
      ),
    ),
  );
}

/** StatefulSet. */
export const statefulSet = workload("StatefulSet", "statefulsets", "sts", {
  defaults: (object) => withMember(object as LooseObject, "spec", statefulSetDefaults),
  prepareCreate: dropStatus({ replicas: 0 }),
  validate: validateStatefulSet,
  validateUpdate: validateStatefulSetUpdate,
});

/** Pods are replaced a few at a time, unless something else is said. */
function strategyDefaults(given: Loose, rollingUpdate: Loose): Loose {
  const strategy = withDefaults(given, { type: "RollingUpdate" });
  if (strategy.type !== "RollingUpdate") return strategy;
  return withMember(withDefaults(strategy, { rollingUpdate: {} }), "rollingUpdate", (rolling) =>
    withDefaults(rolling, rollingUpdate),
  );
}

/** Deployment. */
export const deployment = workload("Deployment", "deployments", "deploy", {
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (given) =>
      withMember(
        withDefaults(templateDefaults(given), {
          replicas: 1,
          strategy: {},
          revisionHistoryLimit: 10,
          progressDeadlineSeconds: 600,
        }),
        "strategy",
        (strategy) => strategyDefaults(strategy, { maxUnavailable: "25%", maxSurge: "25%" }),
      ),
    ),
  prepareCreate: dropStatus({}),
  validate: workloadProblems,
  validateUpdate: selectorIsFixed,
});

/** ReplicaSet. */
export const replicaSet = workload("ReplicaSet", "replicasets", "rs", {
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (given) =>
      withDefaults(templateDefaults(given), { replicas: 1 }),
    ),
  prepareCreate: dropStatus({ replicas: 0 }),
  validate: workloadProblems,
  validateUpdate: selectorIsFixed,
});

/** DaemonSet. */
export const daemonSet = workload("DaemonSet", "daemonsets", "ds", {
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (given) =>
      withMember(
        withDefaults(templateDefaults(given), { updateStrategy: {}, revisionHistoryLimit: 10 }),
        "updateStrategy",
        (strategy) => strategyDefaults(strategy, { maxUnavailable: 1 }),
      ),
    ),
  prepareCreate: (object) => withTemplateGeneration(dropStatus(noPods)(object), 1),
  prepareUpdate: (next, old) => {
    const before = Number(old.metadata.annotations?.[templateGeneration] ?? 0);
    const isSame = sameJson(spec(next).template, spec(old).template);
    return withTemplateGeneration(next, isSame ? before : before + 1);
  },
  validate: workloadProblems,
  validateUpdate: selectorIsFixed,
});

/** Counts the changes of the template, as a field did before apps/v1. */
const templateGeneration = "deprecated.daemonset.template.generation";

function withTemplateGeneration(object: KubeObject, count: number): KubeObject {
  const annotations = { ...object.metadata?.annotations, [templateGeneration]: String(count) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

const noPods = {
  currentNumberScheduled: 0,
  numberMisscheduled: 0,
  desiredNumberScheduled: 0,
  numberReady: 0,
};
