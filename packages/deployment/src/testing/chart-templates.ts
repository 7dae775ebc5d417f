/** As much of Helm's template language as our charts use, for checking them without Helm. Anything else is an error. */
import { dump } from "js-yaml";

/** What templates see. */
export interface ChartScope {
  readonly Values: unknown;
  readonly Release: { readonly Namespace: string; readonly Service: string };
}

type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly expression: string }
  | {
      readonly kind: "if" | "range";
      readonly expression: string;
      readonly body: readonly Node[];
      readonly otherwise: readonly Node[];
    };

/** Renders one template. */
export function renderTemplate(template: string, scope: ChartScope): string {
  // `{{-` and `-}}` take the blanks before and after them away.
  const tokens = template
    .replaceAll(/\s+\{\{-/g, "{{-")
    .replaceAll(/-\}\}\s+/g, "-}}")
    .split(/(\{\{.*?\}\})/s)
    .filter((token) => token !== "");
  const { nodes, rest } = parse(tokens);
  if (rest.length > 0) throw new Error(`an end too many: ${rest[0]}`);
  return nodes.map((node) => run(node, { $: scope })).join("");
}

function parse(tokens: readonly string[]): {
  readonly nodes: readonly Node[];
  readonly rest: readonly string[];
} {
  const nodes: Node[] = [];
  let at = 0;
  while (at < tokens.length) {
    const token = tokens[at] ?? "";
    const action = /^\{\{-?\s*(.*?)\s*-?\}\}$/s.exec(token)?.[1];
    if (action === undefined) nodes.push({ kind: "text", text: token });
    else if (action === "end" || action === "else") break;
    else {
      const control = /^(if|range)\s+(.*)$/s.exec(action);
      if (control === null) nodes.push({ kind: "value", expression: action });
      else {
        const body = parse(tokens.slice(at + 1));
        let { rest } = body;
        let otherwise: readonly Node[] = [];
        if (/else/.test(rest[0] ?? "")) ({ nodes: otherwise, rest } = parse(rest.slice(1)));
        if (!/end/.test(rest[0] ?? "")) throw new Error(`no end of ${token}`);
        nodes.push({ kind: control[1] as "if", expression: control[2] ?? "", body: body.nodes, otherwise });
        at = tokens.length - rest.length;
      }
    }
    at++;
  }
  return { nodes, rest: tokens.slice(at) };
}

type Variables = Readonly<Record<string, unknown>>;

function run(node: Node, variables: Variables): string {
  const all = (nodes: readonly Node[], more: Variables = {}) =>
    nodes.map((one) => run(one, { ...variables, ...more })).join("");
  if (node.kind === "text") return node.text;
  if (node.kind === "value") return String(evaluate(node.expression, variables));
  if (node.kind === "if") return evaluate(node.expression, variables) ? all(node.body) : all(node.otherwise);
  const [, name = "", list = ""] = /^(\$\w+) := (.*)$/s.exec(node.expression) ?? [];
  return (evaluate(list, variables) as readonly unknown[])
    .map((item) => all(node.body, { [name]: item }))
    .join("");
}

function evaluate(expression: string, variables: Variables): unknown {
  const [first = "", ...filters] = expression.split(" | ");
  let value = call(first.trim(), variables);
  for (const filter of filters) {
    const indent = /^nindent (\d+)$/.exec(filter.trim())?.[1];
    if (indent === undefined) throw new Error(`no filter ${filter}`);
    const pad = " ".repeat(Number(indent));
    value = `\n${String(value)
      .split("\n")
      .map((line) => pad + line)
      .join("\n")}`;
  }
  return value;
}

function call(text: string, variables: Variables): unknown {
  const words = wordsOf(text);
  const argument = (at: number): unknown => {
    const word = words[at] ?? "";
    return word.startsWith("(") ? call(word.slice(1, -1), variables) : atom(word, variables);
  };
  switch (words[0]) {
    case "toYaml":
      return dump(argument(1)).trimEnd();
    case "concat":
      return [...(argument(1) as unknown[]), ...(argument(2) as unknown[])];
    case "list":
      return words.slice(1).map((_, at) => argument(at + 1));
    case "int":
      return Math.trunc(Number(argument(1)));
    case "gt":
      return (argument(1) as number) > (argument(2) as number);
    default:
      if (words.length !== 1) throw new Error(`no function ${words[0]}`);
      return argument(0);
  }
}

/** Words of an expression: what is in parentheses or quotes is one of them. */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  let word = "";
  let depth = 0;
  for (const [part] of text.matchAll(/"[^"]*"|[\s\S]/g)) {
    if (depth === 0 && /^\s$/.test(part)) {
      if (word !== "") words.push(word);
      word = "";
      continue;
    }
    if (part === "(") depth++;
    if (part === ")") depth--;
    word += part;
  }
  return word === "" ? words : [...words, word];
}

function atom(word: string, variables: Variables): unknown {
  if (word.startsWith('"')) return JSON.parse(word);
  if (/^\d+$/.test(word)) return Number(word);
  const [variable = "", ...members] = word.split(".");
  if (!Object.hasOwn(variables, variable)) throw new Error(`no variable ${word}`);
  let value: unknown = variables[variable];
  for (const member of members) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, member)) {
      throw new Error(`nil: ${word} has no ${member}`);
    }
    value = (value as Record<string, unknown>)[member];
  }
  return value;
}
