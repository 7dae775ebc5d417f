/** Field selectors: `metadata.name=a,status.phase!=Running` (k8s.io/apimachinery/pkg/fields). */
import { compareBytes, SelectorError } from "./label-requirement.ts";

/** One condition on one field. */
export interface FieldRequirement {
  readonly field: string;
  readonly operator: "=" | "!=";
  readonly value: string;
}

/** All of its requirements must be met; a field that is missing has the empty value. */
export class FieldMatcher {
  readonly requirements: readonly FieldRequirement[];
  constructor(requirements: readonly FieldRequirement[]) {
    this.requirements = requirements;
  }
  get isEmpty(): boolean {
    return this.requirements.length === 0;
  }
  matches(fields: Readonly<Record<string, string>>): boolean {
    return this.requirements.every(({ field, operator, value }) => {
      const actual = Object.hasOwn(fields, field) ? (fields[field] ?? "") : "";
      return (actual === value) === (operator === "=");
    });
  }
  toString(): string {
    return this.requirements
      .map(({ field, operator, value }) => `${field}${operator}${escapeFieldValue(value)}`)
      .join(",");
  }
}

/** Reads a field selector. White space belongs to names and values. @throws SelectorError */
export function parseFieldSelector(text: string): FieldMatcher {
  const requirements: FieldRequirement[] = [];
  // Sorted as in the reference: the text of a selector does not depend on how it was written.
  for (const term of splitTerms(text).sort(compareBytes)) {
    if (term === "") continue;
    const match = /!=|==|=/.exec(term);
    if (match === null) {
      throw new SelectorError(
        `field selector "${text}": "${term}" has no operator; write FIELD=VALUE or FIELD!=VALUE`,
      );
    }
    const field = term.slice(0, match.index);
    const value = unescapeValue(term.slice(match.index + match[0].length), text);
    if (field === "" && value === "") continue;
    requirements.push({ field, operator: match[0] === "!=" ? "!=" : "=", value });
  }
  return new FieldMatcher(requirements);
}

/** The value with backslashes before what has a meaning in a field selector. */
export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, "\\$&");
}

/** Parts between commas that no backslash precedes. */
function splitTerms(text: string): string[] {
  const terms = [""];
  let escaped = false;
  for (const character of text) {
    if (!escaped && character === ",") {
      terms.push("");
      continue;
    }
    escaped = !escaped && character === "\\";
    terms[terms.length - 1] += character;
  }
  return terms;
}

function unescapeValue(value: string, selector: string): string {
  let plain = "";
  let escaped = false;
  for (const character of value) {
    const special = character === "\\" || character === "," || character === "=";
    if (escaped) {
      if (!special) throw new SelectorError(`field selector "${selector}": unknown escape "\\${character}"`);
      plain += character;
      escaped = false;
    } else if (character === "\\") escaped = true;
    else if (special) {
      throw new SelectorError(`field selector "${selector}": write "\\${character}" inside a value`);
    } else plain += character;
  }
  if (escaped) throw new SelectorError(`field selector "${selector}": a backslash at the end of a value`);
  return plain;
}
