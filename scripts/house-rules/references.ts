/**
 * References lead somewhere: relative links of Markdown files, the sections of documents below `docs/` that comments
 * and documents name as the source of a rule, and files of TypeScript that they name in backquotes.
 *
 *     docs/behaviour/controllers.md A5        a document by its path, and a section by the number in its heading
 *     docs/behaviour/csi-plugin.md 8, 9.2     several; also `4-7`, `A3 and A4`, `Part C`
 *     docs/contract.md C1
 *     decision 0018                           a record of docs/decisions, by its number
 *
 * In a document's own directory, and in a test's file, its name alone does. Where `A7` has numbered items, `A7.3` is one of them. Within a document of `docs/behaviour`, `§5` is its own section.
 * A file of TypeScript goes by the end of its path, e.g. `controller/pass.ts`. Decisions and the change log may name what
 * is there no more.
 */
import { basename, dirname, join } from "node:path/posix";
import type { Finding } from "./source.ts";

/** The files of the repository, as far as references need them. */
export interface Files {
  /** Whether there is a file or a directory at the path, relative to the repository. */
  exists(path: string): boolean;
  read(path: string): string;
  /** Documents below `docs/`, by path. */
  readonly documents: readonly string[];
  /** Files of TypeScript, by path. */
  readonly sources: readonly string[];
}

/** Links of one Markdown file without a target. */
export function brokenLinks(path: string, text: string, files: Files): Finding[] {
  const findings: Finding[] = [];
  for (const [index, line] of withoutCode(text).entries()) {
    for (const [, inline, defined] of line.matchAll(/\]\(<?([^)\s>]+)[^)]*\)|^\[[^\]]+\]:\s+(\S+)/g)) {
      const target = inline ?? defined ?? "";
      const why = whyBroken(path, text, target, files);
      if (why !== undefined) findings.push({ path, line: index + 1, message: `the link ${target} ${why}` });
    }
  }
  return findings;
}

function whyBroken(path: string, text: string, target: string, files: Files): string | undefined {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined; // Another site.
  const [file = "", anchor] = target.split("#");
  const from = file.startsWith("/") ? "." : dirname(path);
  const there = file === "" ? path : join(from, decodeURI(file));
  if (!files.exists(there)) return `leads nowhere: there is no ${there}`;
  if (anchor === undefined || !there.endsWith(".md")) return undefined;
  const isThere = anchorsOf(there === path ? text : files.read(there)).has(anchor);
  return isThere ? undefined : `leads nowhere: ${there} has no such heading`;
}

const section = "(?:Part [A-Z]\\b|[A-Z]\\d+(?:\\.\\d+)*\\b|\\d+(?:\\.\\d+)*\\b)";
const named = new RegExp(
  `(?<![\\w~])(?<file>(?:\\.{0,2}/)?(?:[\\w.-]+/)*[\\w-]+\\.md)\\b(?: (?<sections>${section}(?:(?:, | and |-|–)${section})*))?`,
  "g",
);

const namedSource = /`(?:\.\/)?(\w[\w./-]*\.tsx?)`/g;

/** References of one text file to documents, sections or files of TypeScript that do not exist. */
export function brokenReferences(path: string, text: string, files: Files): Finding[] {
  const isRecord = (document: string) => document.startsWith("docs/decisions/");
  const known = new Set(
    files.documents.filter((document) => !isRecord(document)).map((one) => basename(one)),
  );
  const records = files.documents.filter(isRecord).map((document) => basename(document).slice(0, 4));
  const headings = (document: string): ReadonlyMap<string, string> =>
    sectionsOf(document === path ? text : files.read(document));
  const isTest = path.endsWith(".test.ts") || path === "docs/scenarios.md"; // The list has the tests' names.
  const inDocuments = (name: string) =>
    files.documents.filter((document) => !isRecord(document) && basename(document) === name);
  const isBehaviour = path.startsWith("docs/behaviour/");
  const isHistory = isRecord(path) || path === "CHANGELOG.md";
  const isSource = (name: string) => files.sources.some((one) => one === name || one.endsWith(`/${name}`));
  return text.split("\n").flatMap((line, index) => {
    const messages: string[] = [];
    for (const { groups } of line.matchAll(named)) {
      const { file = "", sections } = groups ?? {};
      if (!file.startsWith("docs/") && !known.has(basename(file))) continue; // Another project's.
      const places = [join(file), join(dirname(path), file), ...(isTest ? inDocuments(file) : [])];
      const document = places.find((candidate) => files.exists(candidate));
      if (document === undefined) {
        messages.push(
          `${file} is not a file of this repository; write its path, e.g. docs/behaviour/${basename(file)}`,
        );
      } else if (sections !== undefined) {
        const there = headings(document);
        const missing = sections.split(/, | and |-|–/).filter((name) => !there.has(name));
        messages.push(...missing.map((name) => `${document} has no section ${name}`));
      }
    }
    for (const [, name = ""] of line.matchAll(/§\s?(\d+(?:\.\d+)*|[A-Z]\d*)?/g)) {
      if (!isBehaviour)
        messages.push("a section of no document: write docs/behaviour/NAME.md and its number");
      else if (!headings(path).has(name)) messages.push(`${path} has no section ${name}`);
    }
    for (const [, number = ""] of line.matchAll(/\b(?:decisions? \[?|docs\/decisions\/)(\d{4})\b/g)) {
      if (!records.includes(number)) messages.push(`docs/decisions has no record ${number}`);
    }
    for (const [, name = ""] of line.matchAll(namedSource)) {
      if (!isHistory && !isSource(name)) messages.push(`${name} is no file of this repository`);
    }
    return messages.map((message) => ({ path, line: index + 1, message }));
  });
}

/** The sections of a document by number, with their titles: `## A5. Which`, `### 9.2 vol_data`, `# Part C. Expand`; items as `A5.1`. */
export function sectionsOf(text: string): Map<string, string> {
  const sections = new Map<string, string>();
  let under = "";
  for (const line of withoutCode(text)) {
    const heading = new RegExp(`^#+ (${section})[.:]? (.*)$`).exec(line);
    if (heading !== null) under = heading[1] ?? "";
    if (heading !== null) sections.set(under, heading[2] ?? "");
    const item = /^(\d+)\. /.exec(line)?.[1];
    const number = `${under}.${item}`;
    if (item !== undefined && under !== "" && !sections.has(number))
      sections.set(number, sections.get(under) ?? "");
  }
  return sections;
}

/** Anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of text.replace(/^```[\s\S]*?^```/gm, "").split("\n")) {
    const heading = /^#+ (.*)$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count++) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The lines of a Markdown text; what stands in code is left out. */
function withoutCode(text: string): string[] {
  let isCode = false;
  return text.split("\n").map((line) => {
    const isFence = /^\s*(```|~~~)/.test(line);
    if (isFence) isCode = !isCode;
    return isFence || isCode ? "" : line.replace(/`[^`]*`/g, "");
  });
}
