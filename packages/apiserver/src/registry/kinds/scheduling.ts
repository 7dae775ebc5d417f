/** PriorityClass and RuntimeClass (kubernetes pkg/apis/scheduling/validation, pkg/apis/node/validation). */
import type { KubeObject, Stored } from "@longshore/kube";
import { ByJson } from "../../api/by-json.ts";
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { labelProblems } from "../../api/names.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import { labelsProblems } from "./label-selector-problems.ts";
import { resourceProblems } from "./resource-problems.ts";
import { tolerationProblems } from "./scheduling-rules.ts";
import {
  canonicalQuantities,
  immutable,
  type Loose,
  type LooseObject,
  withDefaults,
  withMember,
} from "./shaping.ts";

/** Highest value of a user's class; higher values are reserved for the system. */
export const userPriorityMax = 1_000_000_000;

/** The classes that every cluster has, as they are when the server starts for the first time. */
export const systemPriorityClasses: readonly KubeObject[] = [
  {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "system-node-critical" },
    value: 2_000_001_000,
    description: "Used for system critical pods that must not be moved from their current node.",
    preemptionPolicy: "PreemptLowerPriority",
  } as KubeObject,
  {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "system-cluster-critical" },
    value: 2_000_000_000,
    description:
      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    preemptionPolicy: "PreemptLowerPriority",
  } as KubeObject,
];

const policies = ["Never", "PreemptLowerPriority"];

function validateClass(object: KubeObject): FieldProblem[] {
  const { value = 0, preemptionPolicy } = object as LooseObject;
  const name = object.metadata?.name ?? "";
  const problems: FieldProblem[] = [];
  if (name.startsWith("system-")) {
    const known = systemPriorityClasses.find((c) => c.metadata?.name === name) as LooseObject | undefined;
    if (known === undefined || known.value !== value) {
      const why = "priority class names with 'system-' prefix are reserved for system use only";
      problems.push(forbiddenValue("metadata.name", `${why}. error: ${systemProblem(name, known, value)}`));
    }
  } else if (value > userPriorityMax) {
    problems.push(
      forbiddenValue("value", `maximum allowed value of a user defined priority is ${userPriorityMax}`),
    );
  }
  if (preemptionPolicy === "") problems.push(requiredValue("preemptionPolicy"));
  else if (preemptionPolicy !== undefined && !policies.includes(preemptionPolicy)) {
    problems.push(unsupportedValue("preemptionPolicy", preemptionPolicy, [...policies].reverse()));
  }
  return problems;
}

function systemProblem(name: string, known: LooseObject | undefined, value: number): string {
  return known === undefined
    ? `${name} is not a known system priority class`
    : `value of ${name} PriorityClass must be ${known.value}, not ${value}`;
}

function validateClassUpdate(next: KubeObject, old: Stored): FieldProblem[] {
  const [now, before] = [next as LooseObject, old as LooseObject];
  const problems: FieldProblem[] = [];
  if ((now.value ?? 0) !== (before.value ?? 0)) {
    problems.push(forbiddenValue("Value", "may not be changed in an update."));
  }
  if (now.preemptionPolicy !== before.preemptionPolicy) {
    problems.push(invalidValue("preemptionPolicy", now.preemptionPolicy, immutable));
  }
  return problems;
}

/** PriorityClass. */
export const priorityClass: Kind = {
  group: "scheduling.k8s.io",
  versions: ["v1", "v1beta1"],
  kind: "PriorityClass",
  plural: "priorityclasses",
  shortNames: ["pc"],
  namespaced: false,
  // Its generation is always the first.
  prepareCreate: (object) => ({ ...object, metadata: { ...object.metadata, generation: 1 } }) as KubeObject,
  defaults: (object) =>
    withDefaults(object as LooseObject, { value: 0, preemptionPolicy: "PreemptLowerPriority" }),
  validateCreate: validateClass,
  validateUpdate: validateClassUpdate,
};

/** Tolerations of a class, each of them once. */
function uniqueTolerationProblems(tolerations: readonly Loose[], at: string): FieldProblem[] {
  // The reference names the list twice here.
  const problems = tolerationProblems(tolerations, `${at}.tolerations`);
  const seen = new ByJson<true>();
  for (const [i, toleration] of tolerations.entries()) {
    spendTime();
    if (seen.get(toleration) === true) problems.push(duplicateValue(`${at}[${i}]`, toleration));
    seen.set(toleration, true);
  }
  return problems;
}

/** RuntimeClass. */
export const runtimeClass: Kind = {
  group: "node.k8s.io",
  versions: ["v1", "v1beta1"],
  kind: "RuntimeClass",
  plural: "runtimeclasses",
  namespaced: false,
  createsOnUpdate: true,
  updateNeedsVersion: true,
  anyFinalizers: true,
  defaults: (object) =>
    withMember(object as LooseObject, "overhead", (overhead) =>
      withMember(overhead, "podFixed", canonicalQuantities),
    ),
  validate: (object) => {
    const { handler = "", overhead, scheduling } = object as LooseObject;
    const problems =
      handler === ""
        ? [requiredValue("handler")]
        : labelProblems(handler).map((why) => invalidValue("handler", handler, why));
    if (overhead !== undefined) {
      // As the limits of a container are: the path in the problem says so, too.
      problems.push(...resourceProblems({ limits: overhead.podFixed }, "overhead"));
    }
    if (scheduling !== undefined) {
      problems.push(...labelsProblems(scheduling.nodeSelector, "scheduling.nodeSelector"));
      problems.push(...uniqueTolerationProblems(scheduling.tolerations ?? [], "scheduling.tolerations"));
    }
    return problems;
  },
  validateUpdate: (next, old) =>
    sameJson((next as LooseObject).handler, (old as LooseObject).handler)
      ? []
      : [invalidValue("handler", (next as LooseObject).handler, immutable)],
};
