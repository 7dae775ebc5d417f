/** Label and field selectors as the API takes them (apimachinery labels and fields). */
import type { KubeObject } from "@longshore/kube";
import { badRequest } from "../api/errors.ts";
import { labelValueProblems, qualifiedNameProblems } from "./names.ts";

/** Says whether an object is selected. */
export type Predicate = (object: KubeObject) => boolean;

interface Requirement {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "absent" | "gt" | "lt";
  readonly values: readonly string[];
}

/** @throws KubeApiError 400 when `text` is no label selector. */
export function labelPredicate(text: string): Predicate {
  const requirements = parseLabelSelector(text);
  return (object) => {
    const labels = object.metadata?.labels ?? {};
    return requirements.every((requirement) => meets(requirement, labels));
  };
}

function meets({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "exists":
      return value !== undefined;
    case "absent":
      return value === undefined;
    case "in":
      return value !== undefined && values.includes(value);
    case "notin":
      return value === undefined || !values.includes(value);
    default: {
      if (value === undefined || !/^-?\d+$/.test(value)) return false;
      const difference = BigInt(value) - BigInt(values[0] ?? "0");
      return operator === "gt" ? difference > 0n : difference < 0n;
    }
  }
}

/** One requirement: key, operator and values, or a key alone, or `!key`; up to the next comma outside brackets. */
const requirementPattern =
  /\s*(?:(!)\s*([^\s,=!<>()]+)|([^\s,=!<>()]+)\s*(?:(==|=|!=|>|<)\s*([^\s,=!<>()]*)|\s(in|notin)\s*\(([^()]*)\))?)\s*(,|$)/y;

function parseLabelSelector(text: string): readonly Requirement[] {
  if (text.trim() === "") return [];
  const requirements: Requirement[] = [];
  requirementPattern.lastIndex = 0;
  for (let more = true; more; ) {
    const match = requirementPattern.exec(text);
    if (match === null) throw badRequest(unreadable(text));
    const [, not, absent, key = absent ?? "", sign, value = "", word, list = "", comma] = match;
    const values = word === undefined ? [value] : list.split(",").map((v) => v.trim());
    const problems = [
      ...qualifiedNameProblems(key),
      ...((sign ?? word) ? values.flatMap(labelValueProblems) : []),
    ];
    if ((sign === ">" || sign === "<") && !/^-?\d+$/.test(value)) {
      throw badRequest(`unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer`);
    }
    if (problems.length > 0) throw badRequest(`unable to parse requirement: ${problems.join("; ")}`);
    const operator = not ? "absent" : word ? (word as "in" | "notin") : sign ? operatorOf[sign] : "exists";
    requirements.push({ key, operator: operator ?? "in", values });
    more = comma === ",";
  }
  return requirements;
}

const operatorOf: Readonly<Record<string, Requirement["operator"]>> = {
  "=": "in",
  "==": "in",
  "!=": "notin",
  ">": "gt",
  "<": "lt",
};

function unreadable(text: string): string {
  return `unable to parse requirement: cannot read the label selector ${JSON.stringify(text)}`;
}

/** A field selector, and the name it picks when it picks one. */
export interface FieldSelector {
  readonly matches: (fields: Readonly<Record<string, string>>) => boolean;
  readonly names: readonly string[];
}

/** @throws KubeApiError 400 when `text` is no field selector. */
export function parseFieldSelector(text: string): FieldSelector {
  const terms = splitEscaped(text, ",").filter((term) => term !== "");
  const parsed = terms.map((term) => {
    const match = /^((?:[^=!\\]|\\.)*)(!=|==|=)(.*)$/s.exec(term);
    if (match === null) {
      throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    }
    const [, field = "", operator, value = ""] = match;
    return { field, equal: operator !== "!=", value: value.replace(/\\([\\,=])/g, "$1") };
  });
  return {
    names: parsed.map(({ field }) => field),
    matches: (fields) =>
      parsed.every(({ field, equal, value }) => ((fields[field] ?? "") === value) === equal),
  };
}

function splitEscaped(text: string, separator: string): string[] {
  const parts: string[] = [];
  let part = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string;
    if (c === "\\") part += c + (text[++i] ?? "");
    else if (c === separator) {
      parts.push(part);
      part = "";
    } else part += c;
  }
  parts.push(part);
  return parts;
}
