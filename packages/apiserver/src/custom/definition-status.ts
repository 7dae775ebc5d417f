/**
 * What becomes of a definition: which of its names it gets, and whether it is served (apiextensions-apiserver
 * controller/status and controller/establish). Pure.
 */
import { sameJson } from "../api/own.ts";
import {
  type Definition,
  type DefinitionCondition,
  type DefinitionNames,
  type DefinitionStatus,
  isTrue,
  storageVersionOf,
} from "./definition.ts";

/** The conditions with this one in the place of the one of its type; a condition that stays as it is keeps its time. */
export function withCondition(
  conditions: readonly DefinitionCondition[],
  condition: DefinitionCondition,
  now: string,
): readonly DefinitionCondition[] {
  const old = conditions.find((one) => one.type === condition.type);
  const lastTransitionTime = old?.status === condition.status ? (old.lastTransitionTime ?? now) : now;
  const next = { ...condition, lastTransitionTime };
  if (old === undefined) return [...conditions, next];
  return conditions.map((one) => (one === old ? next : one));
}

/** The names that other definitions of the group have, in each of their roles. */
interface TakenNames {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

function takenBy(others: readonly Definition[]): TakenNames {
  const names = others.flatMap(({ status }) => (status === undefined ? [] : [status.acceptedNames]));
  return {
    resources: new Set(names.flatMap((n) => [n.plural, n.singular ?? "", ...(n.shortNames ?? [])])),
    kinds: new Set(names.flatMap((n) => [n.kind, n.listKind ?? ""])),
  };
}

/**
 * The status that the definition should have.
 * @param others the other definitions of its group
 * @param now a time of the API
 */
export function definitionStatus(
  definition: Definition,
  others: readonly Definition[],
  now: string,
): DefinitionStatus {
  const { names } = definition.spec;
  const accepted = definition.status?.acceptedNames ?? { plural: "", kind: "" };
  const { given, problem } = acceptNames(names, accepted, takenBy(others));
  let conditions = definition.status?.conditions ?? [];
  conditions = withCondition(conditions, namesCondition(problem), now);
  // Established once is established for good: there may be objects by now.
  if (!isTrue(definition, "Established")) {
    conditions = withCondition(conditions, establishedCondition(problem === undefined), now);
  }
  const approval = approvalCondition(definition);
  if (approval !== undefined) conditions = withCondition(conditions, approval, now);
  const stored = definition.status?.storedVersions ?? [];
  const storage = storageVersionOf(definition);
  // Only ever longer: objects that were stored in an old version may still be.
  const storedVersions = stored.includes(storage) ? stored : [...stored, storage];
  return { conditions, acceptedNames: given, storedVersions };
}

interface NameConflict {
  readonly reason: string;
  readonly message: string;
}

/** Accepts each requested name that no other kind uses; for a name in use, the old value stays. */
function acceptNames(
  asked: DefinitionNames,
  had: DefinitionNames,
  taken: TakenNames,
): { readonly given: DefinitionNames; readonly problem: NameConflict | undefined } {
  const given: { -readonly [K in keyof DefinitionNames]: DefinitionNames[K] } = { ...had };
  let problem: NameConflict | undefined;
  const ask = <K extends keyof DefinitionNames>(key: K, of: ReadonlySet<string>, reason: string) => {
    const value = asked[key];
    const values = (Array.isArray(value) ? value : [value ?? ""]) as readonly string[];
    const conflicts = sameJson(value, had[key]) ? [] : values.filter((name) => name !== "" && of.has(name));
    if (conflicts.length === 0) {
      if (value === undefined) delete given[key];
      else given[key] = value;
      return;
    }
    const texts = conflicts.map((name) => `${JSON.stringify(name)} is already in use`);
    problem = { reason, message: Array.isArray(value) ? texts.join(", ") : (texts[0] as string) };
  };
  ask("plural", taken.resources, "PluralConflict");
  ask("singular", taken.resources, "SingularConflict");
  ask("shortNames", taken.resources, "ShortNamesConflict");
  ask("kind", taken.kinds, "KindConflict");
  ask("listKind", taken.kinds, "ListKindConflict");
  if (asked.categories === undefined) delete given.categories;
  else given.categories = asked.categories;
  return { given, problem };
}

function namesCondition(problem: NameConflict | undefined): DefinitionCondition {
  return problem === undefined
    ? { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" }
    : { type: "NamesAccepted", status: "False", ...problem };
}

function establishedCondition(accepted: boolean): DefinitionCondition {
  const type = "Established";
  return accepted
    ? {
        type,
        status: "True",
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
      }
    : { type, status: "False", reason: "NotAccepted", message: "not all names are accepted" };
}

/** Groups of Kubernetes say who has approved them (controller/apiapproval). */
function approvalCondition({ metadata, spec }: Definition): DefinitionCondition | undefined {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(spec.group)) return undefined;
  const type = "KubernetesAPIApprovalPolicyConformant";
  const annotation = metadata?.annotations?.["api-approved.kubernetes.io"] ?? "";
  if (annotation.startsWith("unapproved")) {
    const message = `not approved: ${JSON.stringify(annotation)}`;
    return { type, status: "False", reason: "UnapprovedAnnotation", message };
  }
  return { type, status: "True", reason: "ApprovedAnnotation", message: `approved in ${annotation}` };
}
