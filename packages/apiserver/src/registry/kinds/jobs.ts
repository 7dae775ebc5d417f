/** Job and CronJob (kubernetes pkg/apis/batch: defaults, strategy, validation). */
import type { KubeObject, Stored } from "@longshore/kube";
import { type FieldProblem, invalidValue, requiredValue, unsupportedValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { sameJson } from "../../api/own.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { podSpecDefaults, podSpecProblems } from "./pod-spec-problems.ts";
import { immutable, type Loose, type LooseObject, withDefaults, withMember } from "./shaping.ts";

const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};

function jobSpecDefaults(given: Loose, version: EmulatedVersion): Loose {
  const { completions, parallelism } = given;
  const filled = withDefaults(given, {
    // One pod, unless it says how many: then as many at once as it likes.
    ...(completions === undefined && parallelism === undefined ? { completions: 1 } : {}),
    parallelism: 1,
    // Failures are counted by index then: their sum must not end the job.
    backoffLimit: given.backoffLimitPerIndex === undefined ? 6 : 2_147_483_647,
    ...(version.hasField("batch.v1.JobSpec", "completionMode")
      ? { completionMode: "NonIndexed", suspend: false }
      : {}),
    ...(version.hasField("batch.v1.JobSpec", "podReplacementPolicy")
      ? { podReplacementPolicy: given.podFailurePolicy === undefined ? "TerminatingOrFailed" : "Failed" }
      : {}),
  });
  return withMember(filled, "template", (template) =>
    withMember(withDefaults(template, { spec: {} }), "spec", podSpecDefaults),
  );
}

/** The labels by which a Job finds its pods, where it does not say so itself. */
function ownLabels(object: KubeObject, version: EmulatedVersion): Readonly<Record<string, string>> {
  const { name = "", uid = "" } = object.metadata ?? {};
  const plain = { "controller-uid": uid, "job-name": name };
  if (!version.has("prefixedJobLabels")) return plain;
  return { ...plain, "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name };
}

function withSelector(object: KubeObject, version: EmulatedVersion): KubeObject {
  const given = spec(object);
  if (given.manualSelector === true) return object;
  const labels = ownLabels(object, version);
  const key = version.has("prefixedJobLabels") ? "batch.kubernetes.io/controller-uid" : "controller-uid";
  const { metadata = {} } = given.template ?? {};
  const template = {
    ...given.template,
    metadata: { ...metadata, labels: { ...metadata.labels, ...labels } },
  };
  // By UID: a later job of the same name must not find these pods.
  const selector = { ...given.selector, matchLabels: { ...given.selector?.matchLabels, [key]: labels[key] } };
  return { ...object, spec: { ...given, selector, template } } as KubeObject;
}

/** A Job without labels has those of its pods (batch/v1 defaults). */
function withLabels(object: KubeObject): KubeObject {
  const { labels } = spec(object).template?.metadata ?? {};
  const own = object.metadata?.labels;
  if (labels === undefined || (own !== undefined && Object.keys(own).length > 0)) return object;
  return { ...object, metadata: { ...object.metadata, labels } } as KubeObject;
}

function notNegative(given: Loose, keys: readonly string[], at: string): FieldProblem[] {
  return keys
    .filter((key) => given[key] !== undefined && given[key] < 0)
    .map((key) => invalidValue(`${at}.${key}`, given[key], "must be greater than or equal to 0"));
}

function jobSpecProblems(given: Loose, at: string): FieldProblem[] {
  const problems = notNegative(
    given,
    ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"],
    at,
  );
  const template = given.template?.spec ?? {};
  problems.push(...podSpecProblems(template, `${at}.template.spec`));
  const { restartPolicy = "" } = template;
  const field = `${at}.template.spec.restartPolicy`;
  if (restartPolicy === "" || restartPolicy === "Always") {
    problems.push(requiredValue(field, 'valid values: "OnFailure", "Never"'));
  } else if (!endings.includes(restartPolicy)) problems.push(unsupportedValue(field, restartPolicy, endings));
  return problems;
}

/** What becomes of a job's container that has failed. */
const endings = ["OnFailure", "Never"];

function jobProblems(object: KubeObject): FieldProblem[] {
  const given = spec(object);
  return [
    ...(given.selector === undefined ? [requiredValue("spec.selector")] : []),
    ...jobSpecProblems(given, "spec"),
  ];
}

function jobUpdateProblems(next: KubeObject, old: Stored): FieldProblem[] {
  return ["completions", "selector", "template", "completionMode"].flatMap((key) =>
    sameJson(spec(next)[key], spec(old)[key])
      ? []
      : [invalidValue(`spec.${key}`, spec(next)[key] ?? null, immutable)],
  );
}

/** Job. */
export const job = (version: EmulatedVersion): Kind => ({
  group: "batch",
  versions: ["v1"],
  kind: "Job",
  orphansByDefault: ["v1"],
  plural: "jobs",
  categories: ["all"],
  namespaced: true,
  statusSubresource: true,
  countsGenerations: version.has("jobGenerations"),
  fields: (o) => ({ "status.successful": String((o as LooseObject).status?.succeeded ?? 0) }),
  defaults: (object) => withMember(object as LooseObject, "spec", (s) => jobSpecDefaults(s, version)),
  prepareCreate: (object) => withLabels({ ...withSelector(object, version), status: {} } as KubeObject),
  validate: jobProblems,
  validateUpdate: jobUpdateProblems,
});

const policies = ["Allow", "Forbid", "Replace"];
const fieldPattern = /^[\d*/,\-?A-Za-z]+$/;

function scheduleProblems(schedule: unknown): FieldProblem[] {
  const text = String(schedule ?? "");
  if (text === "") return [requiredValue("spec.schedule")];
  const words = text.trim().split(/\s+/);
  if (text.startsWith("@")) return [];
  if (words.length !== 5) {
    const why = `Expected exactly 5 fields, found ${words.length}: ${text}`;
    return [invalidValue("spec.schedule", text, why)];
  }
  const wrong = words.find((word) => !fieldPattern.test(word));
  return wrong === undefined
    ? []
    : [invalidValue("spec.schedule", text, `failed to parse int from ${wrong}`)];
}

function cronJobProblems(object: KubeObject): FieldProblem[] {
  const given = spec(object);
  const problems = scheduleProblems(given.schedule);
  problems.push(...notNegative(given, ["startingDeadlineSeconds"], "spec"));
  if (!policies.includes(given.concurrencyPolicy)) {
    problems.push(unsupportedValue("spec.concurrencyPolicy", given.concurrencyPolicy, policies));
  }
  problems.push(...jobSpecProblems(given.jobTemplate?.spec ?? {}, "spec.jobTemplate.spec"));
  problems.push(...notNegative(given, ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], "spec"));
  // Eleven characters are left for what is added to make the name of a job.
  if ((object.metadata?.name ?? "").length > 52) {
    problems.push(invalidValue("metadata.name", object.metadata?.name, "must be no more than 52 characters"));
  }
  return problems;
}

/** CronJob. The job template has no selector. */
export const cronJob = (version: EmulatedVersion): Kind => ({
  group: "batch",
  versions: ["v1", "v1beta1"],
  kind: "CronJob",
  orphansByDefault: ["v1beta1"],
  plural: "cronjobs",
  shortNames: ["cj"],
  categories: ["all"],
  namespaced: true,
  statusSubresource: true,
  countsGenerations: version.has("jobGenerations"),
  defaults: (object) =>
    withMember(object as LooseObject, "spec", (given) =>
      withMember(
        withDefaults(given, {
          concurrencyPolicy: "Allow",
          suspend: false,
          successfulJobsHistoryLimit: 3,
          failedJobsHistoryLimit: 1,
        }),
        "jobTemplate",
        (template) => withMember(template, "spec", (s) => cronTemplateDefaults(s, version)),
      ),
    ),
  prepareCreate: (object) => ({ ...object, status: {} }) as KubeObject,
  validate: cronJobProblems,
});

/** The job's own defaults come when it is made; its pods' are filled at once. */
function cronTemplateDefaults(given: Loose, _version: EmulatedVersion): Loose {
  return withMember(given, "template", (template) =>
    withMember(withDefaults(template, { spec: {} }), "spec", podSpecDefaults),
  );
}
