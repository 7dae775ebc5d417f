/** The kinds of apps/v1 (kubernetes pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation). */
import { type KubeObject, labelSelectorMatches, type Stored } from "@longshore/kube/basics";
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { sameJson } from "../../api/own.ts";
import { labelSelectorProblems, labelsProblems } from "./label-selector-problems.ts";
import { claimSpecDefaults } from "./persistent-volume-claim.ts";
import { podSpecDefaults, podSpecProblems } from "./pod-spec-problems.ts";
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

/** How a kind differs from the others in what it says of its selector and template. */
interface SelectorRules {
  /** What the kind is called in messages. */
  readonly name: string;
  /** Said of a selector that cannot be read. */
  readonly unreadable: string;
  readonly optional?: boolean;
}

const isEmpty = ({ matchLabels = {}, matchExpressions = [] }: Loose): boolean =>
  Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;

/** Problems of the selector, and of a template whose labels it does not choose. */
function selectorProblems(given: Loose, { name, unreadable, optional }: SelectorRules): FieldProblem[] {
  const { selector, template = {} } = given;
  const problems: FieldProblem[] = [];
  if (selector === undefined) {
    if (optional !== true) problems.push(requiredValue("spec.selector"));
  } else {
    problems.push(...labelSelectorProblems(selector, "spec.selector"));
    if (isEmpty(selector)) {
      problems.push(invalidValue("spec.selector", selector, `empty selector is invalid for ${name}`));
    }
  }
  const labels = template.metadata?.labels ?? {};
  switch (choice(selector, labels)) {
    case "unreadable":
      if (optional !== true) problems.push(invalidValue("spec.selector", selector, unreadable));
      break;
    case "other":
      problems.push(
        invalidValue("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
      );
  }
  return problems;
}

/** Whether the selector chooses what has these labels; one that is empty is not asked. */
function choice(
  selector: Loose | undefined,
  labels: Readonly<Record<string, string>>,
): "this" | "other" | "unreadable" {
  if (selector === undefined) return "other";
  if (labelSelectorProblems(selector, "").length > 0) return "unreadable";
  if (isEmpty(selector)) return "this";
  try {
    return labelSelectorMatches(selector, labels) ? "this" : "other";
  } catch {
    return "unreadable";
  }
}

const notNegative = (given: Loose, ...keys: readonly string[]): FieldProblem[] =>
  keys
    .filter((key) => given[key] < 0)
    .map((key) => invalidValue(`spec.${key}`, given[key], "must be greater than or equal to 0"));

/** Pods of a workload run until they are taken away. */
function endlessProblems(template: Loose, kind: string): FieldProblem[] {
  const { restartPolicy, activeDeadlineSeconds } = template.spec ?? {};
  const at = "spec.template.spec";
  const problems: FieldProblem[] = [];
  if (restartPolicy !== "Always") {
    problems.push(unsupportedValue(`${at}.restartPolicy`, restartPolicy, ["Always"]));
  }
  if (activeDeadlineSeconds !== undefined) {
    const why = `activeDeadlineSeconds in ${kind} is not Supported`;
    problems.push(forbiddenValue(`${at}.activeDeadlineSeconds`, why));
  }
  return problems;
}

/** Problems of a template: its labels, where the reference leaves `metadata` out, and its spec. */
function templateProblems(template: Loose): FieldProblem[] {
  return [
    ...labelsProblems(template.metadata?.labels, "spec.template.labels"),
    ...podSpecProblems(template.spec ?? {}, "spec.template.spec"),
  ];
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

function statefulSetProblems(object: KubeObject): readonly FieldProblem[] {
  const given = spec(object);
  const { podManagementPolicy: policy = "", updateStrategy = {}, template = {} } = given;
  const problems: FieldProblem[] = [];
  if (policy === "") problems.push(requiredValue("spec.podManagementPolicy"));
  else if (policy !== "OrderedReady" && policy !== "Parallel") {
    const why = "must be 'OrderedReady' or 'Parallel'";
    problems.push(invalidValue("spec.podManagementPolicy", policy, why));
  }
  problems.push(...updateStrategyProblems(updateStrategy));
  problems.push(...notNegative(given, "replicas"));
  problems.push(...selectorProblems(given, { name: "statefulset", unreadable: "" }));
  // A StatefulSet's template may mount volumes that only its claim templates bring; 1.20 leaves it to the pods.
  if (choice(given.selector, template.metadata?.labels ?? {}) !== "unreadable") {
    problems.push(...labelsProblems(template.metadata?.labels, "spec.template.labels"));
  }
  return [...problems, ...endlessProblems(template, "StatefulSet")];
}

function updateStrategyProblems(strategy: Loose): FieldProblem[] {
  const { type = "", rollingUpdate } = strategy;
  const at = "spec.updateStrategy";
  if (type === "") return [requiredValue(at)];
  if (type === "OnDelete") {
    if (rollingUpdate === undefined) return [];
    const why = "only allowed for updateStrategy 'RollingUpdate'";
    return [invalidValue(`${at}.rollingUpdate`, rollingUpdate, why)];
  }
  if (type !== "RollingUpdate") return [invalidValue(at, strategy, "must be 'RollingUpdate' or 'OnDelete'")];
  const { partition } = rollingUpdate ?? {};
  return partition < 0
    ? [invalidValue(`${at}.rollingUpdate.partition`, partition, "must be greater than or equal to 0")]
    : [];
}

function validateStatefulSetUpdate(next: KubeObject, old: Stored): readonly FieldProblem[] {
  const fixed = (o: KubeObject) => changeable.reduce((s, key) => without(s, key), spec(o));
  if (sameJson(fixed(next), fixed(old))) return [];
  const why =
    "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden";
  return [forbiddenValue("spec", why)];
}

function statefulSetDefaults(given: Loose): Loose {
  const filled = withMember(
    withDefaults(templateDefaults(given), {
      replicas: 1,
      podManagementPolicy: "OrderedReady",
      revisionHistoryLimit: 10,
      updateStrategy: {},
    }),
    "updateStrategy",
    (strategy) => {
      const typed = withDefaults(strategy, { type: "RollingUpdate" });
      if (typed.type !== "RollingUpdate") return typed;
      return withMember(withDefaults(typed, { rollingUpdate: {} }), "rollingUpdate", (rolling) =>
        withDefaults(rolling, { partition: 0 }),
      );
    },
  );
  return withMember(filled, "volumeClaimTemplates", (claims) =>
    mapItems(claims, (claim) =>
      withMember(
        withDefaults(claim, {
          kind: "PersistentVolumeClaim",
          apiVersion: "v1",
          spec: {},
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
  validate: statefulSetProblems,
  validateUpdate: validateStatefulSetUpdate,
});

/** Pods are replaced a few at a time, unless something else is said. */
function _strategyDefaults(given: Loose, rollingUpdate: Loose): Loose {
  const strategy = withDefaults(given, { type: "RollingUpdate" });
  if (strategy.type !== "RollingUpdate") return strategy;
  return withMember(withDefaults(strategy, { rollingUpdate: {} }), "rollingUpdate", (rolling) =>
    withDefaults(rolling, rollingUpdate),
  );
}

/** A count of pods, or a share of them, with what is wrong with it. */
function amountProblems(value: unknown, at: string): FieldProblem[] {
  if (typeof value === "string") {
    return /^[0-9]+%$/.test(value) ? [] : [invalidValue(at, value, percentRule)];
  }
  return Number(value) < 0 ? [invalidValue(at, value, "must be greater than or equal to 0")] : [];
}

const percentRule =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

const isNothing = (value: unknown): boolean => value === 0 || /^0+%$/.test(String(value));

function rollingProblems(rolling: Loose, at: string): FieldProblem[] {
  const { maxUnavailable = 0, maxSurge = 0 } = rolling;
  const problems = amountProblems(maxUnavailable, `${at}.maxUnavailable`);
  problems.push(...amountProblems(maxSurge, `${at}.maxSurge`));
  // Not one pod fewer and not one more: nothing could ever be replaced.
  if (isNothing(maxUnavailable) && isNothing(maxSurge)) {
    const why = "may not be 0 when `maxSurge` is 0";
    problems.push(invalidValue(`${at}.maxUnavailable`, maxUnavailable, why));
  }
  if (/^\d+%$/.test(String(maxUnavailable)) && Number.parseInt(String(maxUnavailable), 10) > 100) {
    problems.push(invalidValue(`${at}.maxUnavailable`, maxUnavailable, "must not be greater than 100%"));
  }
  return problems;
}

function strategyProblems(strategy: Loose, at: string): FieldProblem[] {
  const { type, rollingUpdate } = strategy;
  if (type === "Recreate") {
    const why = "may not be specified when strategy `type` is 'Recreate'";
    return rollingUpdate === undefined ? [] : [forbiddenValue(`${at}.rollingUpdate`, why)];
  }
  if (type !== "RollingUpdate") return [unsupportedValue(at, strategy, ["Recreate", "RollingUpdate"])];
  if (rollingUpdate === undefined) {
    return [requiredValue(`${at}.rollingUpdate`, "this should be defaulted and never be nil")];
  }
  return rollingProblems(rollingUpdate, `${at}.rollingUpdate`);
}

/** What is said of a template that many pods are made of, once its selector can be read. */
function replicatedProblems(given: Loose): FieldProblem[] {
  const { selector, template = {} } = given;
  const problems = selectorProblems(given, { name: "deployment", unreadable: "invalid label selector" });
  if (choice(selector, template.metadata?.labels ?? {}) === "unreadable") return problems;
  return [...problems, ...templateProblems(template), ...endlessProblems(template, "ReplicaSet")];
}

function deploymentProblems(object: KubeObject): readonly FieldProblem[] {
  const given = spec(object);
  const problems = notNegative(given, "replicas");
  problems.push(...replicatedProblems(given));
  problems.push(...strategyProblems(given.strategy ?? {}, "spec.strategy"));
  problems.push(...notNegative(given, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"));
  const { progressDeadlineSeconds: deadline, minReadySeconds: ready = 0 } = given;
  // No pod is available before `minReadySeconds`: with a nearer deadline, every rollout would fail.
  if (deadline !== undefined && deadline <= ready) {
    problems.push(
      invalidValue("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"),
    );
  }
  return problems;
}

function deploymentDefaults(given: Loose): Loose {
  const filled = withDefaults(templateDefaults(given), {
    replicas: 1,
    strategy: {},
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
  });
  return withMember(filled, "strategy", (strategy) => {
    const typed = withDefaults(strategy, { type: "RollingUpdate" });
    if (typed.type !== "RollingUpdate") return typed;
    return withMember(withDefaults(typed, { rollingUpdate: {} }), "rollingUpdate", (rolling) =>
      withDefaults(rolling, { maxUnavailable: "25%", maxSurge: "25%" }),
    );
  });
}

/** Deployment. */
export const deployment = workload("Deployment", "deployments", "deploy", {
  defaults: (object) => withMember(object as LooseObject, "spec", deploymentDefaults),
  prepareCreate: dropStatus({}),
  validate: deploymentProblems,
  validateUpdate: selectorIsFixed,
});

/** ReplicaSet. */
export const replicaSet = workload("ReplicaSet", "replicasets", "rs", {
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (given) =>
      withDefaults(templateDefaults(given), { replicas: 1 }),
    ),
  prepareCreate: dropStatus({ replicas: 0 }),
  validate: (object) => [
    ...notNegative(spec(object), "replicas", "minReadySeconds"),
    ...replicatedProblems(spec(object)),
  ],
  validateUpdate: selectorIsFixed,
});

function daemonStrategyProblems(strategy: Loose, at: string): FieldProblem[] {
  const { type, rollingUpdate = {} } = strategy;
  if (type === "OnDelete") return [];
  if (type !== "RollingUpdate") return [unsupportedValue(at, strategy, ["RollingUpdate", "OnDelete"])];
  const { maxUnavailable = 1, maxSurge = 0 } = rollingUpdate as Loose;
  const here = `${at}.rollingUpdate`;
  const problems = amountProblems(maxUnavailable, `${here}.maxUnavailable`);
  problems.push(...amountProblems(maxSurge, `${here}.maxSurge`));
  if (isNothing(maxUnavailable) && isNothing(maxSurge)) {
    problems.push(invalidValue(`${here}.maxUnavailable`, maxUnavailable, "cannot be 0"));
  }
  return problems;
}

function daemonSetProblems(object: KubeObject): readonly FieldProblem[] {
  const given = spec(object);
  const problems = selectorProblems(given, { name: "daemonset", unreadable: "", optional: true });
  problems.push(...templateProblems(given.template ?? {}));
  problems.push(...endlessProblems(given.template ?? {}, "DaemonSet"));
  problems.push(...notNegative(given, "minReadySeconds"));
  problems.push(...daemonStrategyProblems(given.updateStrategy ?? {}, "spec.updateStrategy"));
  return [...problems, ...notNegative(given, "revisionHistoryLimit")];
}

const templateGeneration = "deprecated.daemonset.template.generation";

/** Which of its templates a DaemonSet is at, which apps/v1 shows as an annotation. */
function withTemplateGeneration(object: KubeObject, generation: number): KubeObject {
  const annotations = { ...object.metadata?.annotations, [templateGeneration]: String(generation) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** DaemonSet. */
export const daemonSet = workload("DaemonSet", "daemonsets", "ds", {
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (given) =>
      withMember(
        withDefaults(templateDefaults(given), { updateStrategy: {}, revisionHistoryLimit: 10 }),
        "updateStrategy",
        (strategy) => {
          const typed = withDefaults(strategy, { type: "RollingUpdate" });
          if (typed.type !== "RollingUpdate") return typed;
          return withMember(withDefaults(typed, { rollingUpdate: {} }), "rollingUpdate", (rolling) =>
            withDefaults(rolling, { maxUnavailable: 1 }),
          );
        },
      ),
    ),
  prepareCreate: (object) =>
    withTemplateGeneration(
      dropStatus({
        currentNumberScheduled: 0,
        numberMisscheduled: 0,
        desiredNumberScheduled: 0,
        numberReady: 0,
      })(object),
      1,
    ),
  prepareUpdate: (next, old) => {
    const before = Number(old.metadata.annotations?.[templateGeneration] ?? 1);
    const same = sameJson(spec(next).template, spec(old).template);
    return withTemplateGeneration(next, same ? before : before + 1);
  },
  validate: daemonSetProblems,
  validateUpdate: selectorIsFixed,
});
