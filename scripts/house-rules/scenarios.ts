/**
 * Scenarios: tests in which controllers, node agents or a whole cluster run under the virtual clock. The name of each ends with
 * the rule that it shows: `… (NAME.md A7, A8; OTHER.md 8)`, documents below `docs/` and their sections. `docs/scenarios.md` lists them.
 */
import { basename } from "node:path/posix";
import { type Files, sectionsOf } from "./references.ts";
import { type Finding, isNode, lineAt, type Node, type Source, walk } from "./source.ts";

/** One scenario. */
export interface Scenario {
  readonly path: string;
  readonly line: number;
  /** The names of the groups around it and its own, without the rules. */
  readonly name: string;
  /** Rules that it shows, in the order of its name. */
  readonly rules: readonly Rule[];
}

/** A section of a document below `docs/`. */
export interface Rule {
  /** The document's file name. */
  readonly document: string;
  /** E.g. `A7` or `3.1`. */
  readonly section: string;
}

const group = /[\w-]+\.md (?:Part )?[A-Z]?\d*(?:\.\d+)*(?:(?:, | and )[A-Z]?\d+(?:\.\d+)*)*/;
const rulesAtEnd = new RegExp(` \\((${group.source}(?:; ${group.source})*)\\)$`);

/** The scenarios of a test file, from top to bottom; no other file has any. */
export function scenariosOf(source: Source): readonly Scenario[] {
  if (!source.path.endsWith(".test.ts")) return [];
  const calls: { readonly node: Node; readonly kind: "group" | "test"; readonly title: string }[] = [];
  walk(source.program, (node) => {
    const kind = kindOf(node);
    const title = kind === undefined ? undefined : titleOf(node, source);
    if (kind !== undefined && title !== undefined) calls.push({ node, kind, title });
  });
  return calls.flatMap(({ node, kind, title }): Scenario[] => {
    const rules = rulesAtEnd.exec(title);
    if (kind === "group" || rules === null) return [];
    const around = calls.filter(
      (other) => other.kind === "group" && other.node.start < node.start && other.node.end >= node.end,
    );
    const names = [...around.map((other) => other.title), title];
    return [
      {
        path: source.path,
        line: lineAt(source, node.start),
        name: names.map((name) => name.replace(/ \([^()]*\.md [^()]*\)$/, "")).join(" › "),
        rules: (rules[1] ?? "").split("; ").flatMap(rulesOf),
      },
    ];
  });
}

function rulesOf(text: string): readonly Rule[] {
  const space = text.indexOf(" ");
  const document = text.slice(0, space);
  return text
    .slice(space + 1)
    .split(/, | and /)
    .map((section) => ({ document, section }));
}

/** Whether a call makes a test or a group: `it(…)`, `test.each(…)(…)`, `describe.runIf(…)(…)`. */
function kindOf(node: Node): "group" | "test" | undefined {
  if (node.type !== "CallExpression") return undefined;
  let callee = node.callee;
  while (isNode(callee) && (callee.type === "MemberExpression" || callee.type === "CallExpression")) {
    callee = callee.type === "MemberExpression" ? callee.object : callee.callee;
  }
  const name = isNode(callee) && callee.type === "Identifier" ? callee.name : undefined;
  if (name === "it" || name === "test") return "test";
  return name === "describe" ? "group" : undefined;
}

/** The first argument where it is a text; of a template, as it is written. */
function titleOf(node: Node, source: Source): string | undefined {
  const [first] = node.arguments as readonly Node[];
  if (first?.type === "Literal") return typeof first.value === "string" ? first.value : undefined;
  return first?.type === "TemplateLiteral" ? source.text.slice(first.start + 1, first.end - 1) : undefined;
}

/** Where the list is. */
export const scenariosPath = "docs/scenarios.md";

/** The finding where the list is not that of the tests. */
export function staleScenarios(sources: readonly Source[], files: Files): Finding[] {
  const wanted = scenarioDocument(sources, files);
  if (files.exists(scenariosPath) && files.read(scenariosPath) === wanted) return [];
  return [
    {
      path: scenariosPath,
      line: 1,
      message: "is not the list of the tests; write it again: npx tsx scripts/scenarios.ts",
    },
  ];
}

/** The text of `docs/scenarios.md`. */
export function scenarioDocument(sources: readonly Source[], files: Files): string {
  const scenarios = sources.flatMap(scenariosOf);
  const pathOf = (document: string) =>
    files.documents.find(
      (candidate) => basename(candidate) === document && !candidate.includes("/decisions/"),
    );
  const titleOfRule = ({ document, section }: Rule): string => {
    const path = pathOf(document);
    return path === undefined ? "" : (sectionsOf(files.read(path)).get(section) ?? "");
  };
  const byDocument = new Map<string, Map<string, Scenario[]>>();
  for (const scenario of scenarios) {
    for (const { document, section } of scenario.rules) {
      const sections = byDocument.get(document) ?? new Map<string, Scenario[]>();
      byDocument.set(document, sections);
      sections.set(section, [...(sections.get(section) ?? []), scenario]);
    }
  }
  const lines = [
    "# Scenarios",
    "",
    `${scenarios.length} tests in which real controllers, node agents or the whole cluster run under the virtual clock. The name of each ends with the`,
    "rule that it shows; one that shows several is listed with each. `%s` and the like stand for the rows of a test that is run once for each.",
    "",
    "This file is written by `npx tsx scripts/scenarios.ts`. The house rules compare it with the tests, and the rules with the documents.",
  ];
  for (const [document, sections] of [...byDocument].sort(([one], [other]) => compare(one, other))) {
    const path = pathOf(document) ?? document;
    lines.push("", `## [${path}](${path.replace("docs/", "")})`);
    for (const [section, shown] of [...sections].sort(([one], [other]) => compare(one, other))) {
      const title = titleOfRule({ document, section });
      lines.push("", `### ${document.replace(".md", "")} ${section}. ${title}`, "");
      lines.push(
        ...table([["scenario", "test"], ...shown.map(({ name, path }) => [cell(name), link(path)])]),
      );
    }
  }
  return `${lines.join("\n")}\n`;
}

/** A table as the formatter wants it. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[], fill: string) =>
    `| ${cells.map((text, column) => text.padEnd(widths[column] ?? 0, fill)).join(" | ")} |`;
  const [head = [], ...body] = rows;
  return [line(head, " "), line(["", ""], "-"), ...body.map((row) => line(row, " "))];
}

const compare = (one: string, other: string) => one.localeCompare(other, "en", { numeric: true });

const cell = (text: string) =>
  text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll(/[*_`]/g, "\\$&");

function link(path: string): string {
  const short = path.replace(/^packages\/([^/]+)\/src\/(?:.*\/)?/, "$1/").replace(/^tests\//, "");
  return `[${short}](../${path})`;
}
