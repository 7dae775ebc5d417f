/**
 * Libraries speak of the fields of their options, not of the command's flags: a program that uses the library has no flags.
 * The command puts flags in place of fields (`packages/cli/src/field-flags.ts`). A word that is only a flag is an argument
 * of another program, and so are those in a whole script; a whole `longshore` command in double quotes may be recommended.
 */
import { type Finding, lineAt, type Source, walk } from "./source.ts";

/** The package whose texts are those of the command. */
const mayNameFlags = /^packages\/cli\//;

const ownCommand = /"longshore [^"]*/g;
const flag = /(?:^|[\s"'`(])(--[a-z][a-z-]+)/;

/** Flags in the texts of one source. */
export function flagsInTexts(source: Source): Finding[] {
  if (mayNameFlags.test(source.path)) return [];
  const findings: Finding[] = [];
  walk(source.program, (node) => {
    const text = textOf(node.type, node.value);
    if (text.startsWith("#!/bin/sh\n")) return;
    const named = /\s/.test(text) ? flag.exec(text.replaceAll(ownCommand, ""))?.[1] : undefined;
    if (named === undefined) return;
    const message = `a text names the flag ${named}: name the field of the options, in backquotes`;
    findings.push({ path: source.path, line: lineAt(source, node.start), message });
  });
  return findings;
}

/** The text of a literal, or of one part of a template. */
function textOf(type: string, value: unknown): string {
  if (type === "Literal" && typeof value === "string") return value;
  if (type !== "TemplateElement") return "";
  return (value as { readonly cooked: string | null }).cooked ?? "";
}
