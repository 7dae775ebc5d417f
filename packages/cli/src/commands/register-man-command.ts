/** `longshore man`: manual pages made from the command's own tree. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { absolute } from "../environment.ts";
import { UsageError } from "../exit.ts";
import { version } from "../version.ts";
import { shownBelow } from "./register-completion-command.ts";

/** Adds the verb. */
export function registerManCommand(program: Command): void {
  program
    .command("man")
    .description("print the manual page of a verb: longshore man cluster up | man -l -")
    .argument("[verb...]", "the verb, with those above it; none: the command itself")
    .option("--dir <dir>", "write the pages of all verbs there instead, as longshore-cluster-up.1")
    .action((verb: readonly string[], { dir }: { readonly dir?: string }) => {
      if (dir === undefined) process.stdout.write(manualPage(verbAt(program, verb)));
      else writePages(program, absolute(dir));
    });
}

function verbAt(program: Command, path: readonly string[]): Command {
  return path.reduce((command, name) => {
    const below = command.commands.find((verb) => verb.name() === name);
    if (below !== undefined) return below;
    const names = shownBelow(command).map((verb) => verb.name());
    throw new UsageError(
      `no verb "${name}" below ${pathOf(command)}: there are ${names.join(", ") || "none"}`,
    );
  }, program);
}

function writePages(command: Command, dir: string): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, `${pathOf(command).replaceAll(" ", "-")}.1`), manualPage(command));
  for (const verb of shownBelow(command)) writePages(verb, dir);
}

/** `longshore cluster up`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** The page of a verb, in the man macros of roff (groff_man(7)). */
export function manualPage(command: Command): string {
  const path = pathOf(command);
  const title = path.replaceAll(" ", "-");
  const helper = command.createHelp();
  const options = helper.visibleOptions(command).map((option) => ({
    term: option.flags,
    text: helper.optionDescription(option),
  }));
  const verbs = helper
    .visibleCommands(command)
    .filter((verb) => verb.name() !== "help")
    .map((verb) => ({ term: verb.name(), text: verb.description() }));
  const args = helper.visibleArguments(command).map((argument) => ({
    term: argument.name(),
    text: helper.argumentDescription(argument),
  }));
  const after = textAfter(command);
  return [
    `.TH ${title.toUpperCase()} 1 "" "longshore ${version}" "Longshore"`,
    ".SH NAME",
    roff(`${title} - ${command.description()}`),
    ".SH SYNOPSIS",
    `.B ${roff(path)}`,
    roff(command.usage()),
    ...listed("ARGUMENTS", args),
    ...listed("OPTIONS", options),
    ...listed("COMMANDS", verbs),
    ...(after === "" ? [] : [".SH NOTES", ".nf", roff(after), ".fi"]),
    ...seeAlso(command, verbs),
    "",
  ].join("\n");
}

function listed(
  heading: string,
  items: readonly { readonly term: string; readonly text: string }[],
): string[] {
  if (items.length === 0) return [];
  return [`.SH ${heading}`, ...items.flatMap(({ term, text }) => [".TP", `.B ${roff(term)}`, roff(text)])];
}

function seeAlso(command: Command, verbs: readonly { readonly term: string }[]): string[] {
  const path = pathOf(command).replaceAll(" ", "-");
  const above = command.parent === null ? [] : [pathOf(command.parent).replaceAll(" ", "-")];
  const pages = [...above, ...verbs.map(({ term }) => `${path}-${term}`)];
  return pages.length === 0 ? [] : [".SH SEE ALSO", pages.map((page) => `${roff(page)}(1)`).join(", ")];
}

/** What the help of the verb says after its options: what `addHelpText` was given, without the help itself. */
function textAfter(command: Command): string {
  const kept = command.configureOutput();
  let whole = "";
  const writeOut = (text: string) => {
    whole += text;
  };
  command.configureOutput({ ...kept, writeOut }).outputHelp();
  command.configureOutput(kept);
  return whole.slice(command.helpInformation().length).trim();
}

/** The text as roff takes it: no escape, no macro at the beginning of a line, and minus signs that can be copied. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^(['.])/gm, "\\&$1");
}
