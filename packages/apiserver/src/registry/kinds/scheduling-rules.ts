/** Where a pod may run: affinity, tolerations, taints and spread (pkg/apis/core/validation). */
import {
  duplicateValue,
  type FieldProblem,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { labelProblems, labelValueProblems, qualifiedNameProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import {
  labelSelectorProblems,
  nodeSelectorProblems,
  nodeSelectorTermProblems,
} from "./label-selector-problems.ts";
import type { Loose } from "./shaping.ts";

const taintEffects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** What a taint does; a toleration may leave it out. */
export function taintEffectProblems(effect: string, at: string, optional: boolean): FieldProblem[] {
  if (effect === "") return optional ? [] : [requiredValue(at)];
  return taintEffects.includes(effect) ? [] : [unsupportedValue(at, effect, taintEffects)];
}

/** Problems of tolerations. */
export function tolerationProblems(tolerations: readonly Loose[], at: string): FieldProblem[] {
  return tolerations.flatMap((toleration, i) => oneTolerationProblems(toleration, `${at}[${i}]`));
}

function oneTolerationProblems(toleration: Loose, at: string): FieldProblem[] {
  const { key = "", operator = "", value = "", effect = "", tolerationSeconds } = toleration;
  const problems: FieldProblem[] =
    key === "" ? [] : qualifiedNameProblems(key).map((why) => invalidValue(`${at}.key`, key, why));
  if (key === "" && operator !== "Exists") {
    const why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    problems.push(invalidValue(`${at}.operator`, operator, why));
  }
  if (tolerationSeconds !== undefined && effect !== "NoExecute") {
    const why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    problems.push(invalidValue(`${at}.effect`, effect, why));
  }
  if (operator === "" || operator === "Equal") {
    const why = labelValueProblems(value).join(";");
    if (why !== "") problems.push(invalidValue(`${at}.operator`, value, why));
  } else if (operator === "Exists") {
    if (value !== "") {
      const why = "value must be empty when `operator` is 'Exists'";
      problems.push(invalidValue(`${at}.operator`, toleration, why));
    }
  } else problems.push(unsupportedValue(`${at}.operator`, operator, ["Equal", "Exists"]));
  return [...problems, ...taintEffectProblems(effect, `${at}.effect`, true)];
}

/** Problems of a node's taints; the reference says where they are by their old place. */
export function taintProblems(taints: readonly Loose[], at: string): FieldProblem[] {
  const seen = new Set<string>();
  return taints.flatMap(({ key = "", value = "", effect = "" }, i) => {
    spendTime();
    const here = `${at}[${i}]`;
    const problems = qualifiedNameProblems(key).map((why) => invalidValue(`${here}.key`, key, why));
    const wrong = labelValueProblems(value).join(";");
    if (wrong !== "") problems.push(invalidValue(`${here}.value`, value, wrong));
    problems.push(...taintEffectProblems(effect, `${here}.effect`, false));
    if (seen.has(`${key}\n${effect}`)) {
      const { message } = duplicateValue(here, { key, value, effect });
      const why = `${message}: taints must be unique by key and effect pair`;
      problems.push({ reason: "FieldValueDuplicate", message: why, field: here });
    }
    seen.add(`${key}\n${effect}`);
    return problems;
  });
}

const weightProblems = (weight: unknown, at: string): FieldProblem[] =>
  Number(weight ?? 0) >= 1 && Number(weight) <= 100
    ? []
    : [invalidValue(`${at}.weight`, weight ?? 0, "must be in the range 1-100")];

const required = "requiredDuringSchedulingIgnoredDuringExecution";
const preferred = "preferredDuringSchedulingIgnoredDuringExecution";

/** Problems of a pod's affinity. */
export function affinityProblems(affinity: Loose | undefined, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const node = affinity?.nodeAffinity as Loose | undefined;
  if (node?.[required] !== undefined) {
    problems.push(...nodeSelectorProblems(node[required], `${at}.nodeAffinity.${required}`));
  }
  for (const [i, term] of ((node?.[preferred] ?? []) as readonly Loose[]).entries()) {
    spendTime();
    const here = `${at}.nodeAffinity.${preferred}[${i}]`;
    problems.push(...weightProblems(term.weight, here));
    problems.push(...nodeSelectorTermProblems(term.preference ?? {}, `${here}.preference`));
  }
  for (const key of ["podAffinity", "podAntiAffinity"]) {
    const pods = affinity?.[key] as Loose | undefined;
    for (const [i, term] of ((pods?.[required] ?? []) as readonly Loose[]).entries()) {
      problems.push(...podTermProblems(term, `${at}.${key}.${required}[${i}]`));
    }
    for (const [i, term] of ((pods?.[preferred] ?? []) as readonly Loose[]).entries()) {
      const here = `${at}.${key}.${preferred}[${i}]`;
      problems.push(...weightProblems(term.weight, here));
      problems.push(...podTermProblems(term.podAffinityTerm ?? {}, `${here}.podAffinityTerm`));
    }
  }
  return problems;
}

function podTermProblems(term: Loose, at: string): FieldProblem[] {
  const { labelSelector, namespaces = [], topologyKey = "" } = term;
  // The reference calls the selector by the name of its second half.
  const problems = labelSelectorProblems(labelSelector, `${at}.matchExpressions`);
  for (const name of namespaces as readonly string[]) {
    problems.push(...labelProblems(name).map((why) => invalidValue(`${at}.namespace`, name, why)));
  }
  if (topologyKey === "") problems.push(requiredValue(`${at}.topologyKey`, "can not be empty"));
  problems.push(
    ...qualifiedNameProblems(topologyKey).map((why) => invalidValue(`${at}.topologyKey`, topologyKey, why)),
  );
  return problems;
}

const whenUnsatisfiable = ["DoNotSchedule", "ScheduleAnyway"];

/** Problems of topology spread constraints. */
export function spreadProblems(constraints: readonly Loose[], at: string): FieldProblem[] {
  const pairs = constraints.map((c) => `{${c.topologyKey ?? ""}, ${c.whenUnsatisfiable ?? ""}}`);
  const lastPlaces = new Map(pairs.map((pair, i) => [pair, i]));
  return constraints.flatMap(({ maxSkew = 0, topologyKey = "", whenUnsatisfiable: when = "" }, i) => {
    const here = `${at}[${i}]`;
    const problems: FieldProblem[] = [];
    if (maxSkew <= 0) problems.push(invalidValue(`${here}.maxSkew`, maxSkew, "must be greater than zero"));
    if (topologyKey === "") problems.push(requiredValue(`${here}.topologyKey`, "can not be empty"));
    if (!whenUnsatisfiable.includes(when)) {
      problems.push(unsupportedValue(`${here}.whenUnsatisfiable`, when, whenUnsatisfiable));
    }
    // Of two duplicates, the first is reported.
    if ((lastPlaces.get(pairs[i] as string) ?? i) > i) {
      problems.push(duplicateValue(`${here}.{topologyKey, whenUnsatisfiable}`, pairs[i]));
    }
    return problems;
  });
}
