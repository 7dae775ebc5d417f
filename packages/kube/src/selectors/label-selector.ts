/**
 * Label selectors: the text form of list and watch, and the object form of workloads and storage
 * (k8s.io/apimachinery/pkg/labels and meta/v1 LabelSelectorAsSelector).
 */
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import {
  LabelMatcher,
  type LabelOperator,
  type LabelRequirement,
  type Labels,
  labelRequirement,
  SelectorError,
} from "./label-requirement.ts";
import { qualifiedNameErrors } from "./validation.ts";

/** Reads the text form, such as `app=web,tier in (a,b),!old`. @throws SelectorError */
export function parseLabelSelector(text: string): LabelMatcher {
  return new LabelMatcher(new LabelSelectorParser(tokensOf(text), text).parse());
}

/** The matcher of an object form; undefined matches nothing. @throws SelectorError */
export function labelSelectorMatcher(selector: LabelSelector): LabelMatcher {
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    requirements.push(labelRequirement(key, "=", [value]));
  }
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const known = expressionOperators.get(operator);
    if (known === undefined) {
      throw new SelectorError(`"${operator}" is not a valid label selector operator`);
    }
    requirements.push(labelRequirement(key, known, values ?? []));
  }
  return new LabelMatcher(requirements);
}

/** True when the labels match; an undefined selector matches nothing, an empty one everything. @throws SelectorError */
export function labelSelectorMatches(
  selector: LabelSelector | undefined | null,
  labels: Labels | undefined,
): boolean {
  return selector !== undefined && selector !== null && labelSelectorMatcher(selector).matches(labels);
}

const expressionOperators: ReadonlyMap<string, LabelOperator> = new Map([
  ["In", "in"],
  ["NotIn", "notin"],
  ["Exists", "exists"],
  ["DoesNotExist", "!"],
]);

type TokenKind =
  | "("
  | ")"
  | ","
  | "!"
  | "="
  | "=="
  | "!="
  | ">"
  | "<"
  | "in"
  | "notin"
  | "identifier"
  | "end";

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

/** Symbols stand for themselves, the longest that fits; all between symbols and white space is a word. */
function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const [word] of text.matchAll(/==|!=|[=!(),<>]|[^=!(),<>\s]+/g)) {
    const isWord = !/^[=!(),<>]/.test(word);
    const kind = isWord && word !== "in" && word !== "notin" ? "identifier" : (word as TokenKind);
    tokens.push({ kind, text: word });
  }
  return tokens;
}

class LabelSelectorParser {
  readonly #tokens: readonly Token[];
  readonly #text: string;
  #position = 0;

  constructor(tokens: readonly Token[], text: string) {
    this.#tokens = tokens;
    this.#text = text;
  }

  parse(): readonly LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    if (this.#peek().kind === "end") return requirements;
    for (;;) {
      requirements.push(this.#requirement());
      const { kind } = this.#take();
      if (kind === "end") return requirements;
      if (kind !== ",") throw this.#unexpected("',' or the end");
    }
  }

  #requirement(): LabelRequirement {
    const absent = this.#peek().kind === "!";
    if (absent) this.#take();
    const key = this.#word("a label key");
    const complaints = qualifiedNameErrors(key);
    if (complaints.length > 0) throw new SelectorError(`label key "${key}": ${complaints.join("; ")}`);
    if (absent) return labelRequirement(key, "!", []);
    if (["end", ","].includes(this.#peek().kind)) return labelRequirement(key, "exists", []);
    const { kind } = this.#take(true);
    switch (kind) {
      case "in":
      case "notin":
        return labelRequirement(key, kind, [...new Set(this.#list())]);
      case "=":
      case "==":
      case "!=":
        return labelRequirement(key, kind, [this.#exactValue()]);
      case ">":
        return labelRequirement(key, "gt", [this.#exactValue()]);
      case "<":
        return labelRequirement(key, "lt", [this.#exactValue()]);
      default:
        throw this.#unexpected("in, notin, =, ==, !=, >, <");
    }
  }

  #exactValue(): string {
    if (["end", ","].includes(this.#peek().kind)) return "";
    return this.#word("a value");
  }

  /** `(a,b)`. Two adjacent commas, a comma next to a bracket, and `()` each stand for an empty value. */
  #list(): readonly string[] {
    if (this.#take().kind !== "(") throw this.#unexpected("'('");
    const values: string[] = [];
    for (;;) {
      values.push(["," as TokenKind, ")"].includes(this.#peek().kind) ? "" : this.#word("a value"));
      const { kind } = this.#take();
      if (kind === ")") return values;
      if (kind !== ",") throw this.#unexpected("',' or ')'");
    }
  }

  #word(expected: string): string {
    const token = this.#take();
    if (token.kind !== "identifier") throw this.#unexpected(expected);
    return token.text;
  }

  #peek(): Token {
    return this.#at(this.#position, false);
  }

  #take(asOperator = false): Token {
    return this.#at(this.#position++, asOperator);
  }

  /** `in` and `notin` are words except where an operator stands. */
  #at(position: number, asOperator: boolean): Token {
    const token = this.#tokens[position] ?? { kind: "end", text: "the end" };
    if (asOperator || (token.kind !== "in" && token.kind !== "notin")) return token;
    return { kind: "identifier", text: token.text };
  }

  #unexpected(expected: string): SelectorError {
    const found = this.#tokens[this.#position - 1]?.text ?? "the end";
    return new SelectorError(
      `label selector "${this.#text}": found '${found}' where ${expected} should stand`,
    );
  }
}
