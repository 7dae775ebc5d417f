import { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "../main.ts";
import { manualPage } from "./register-man-command.ts";

const longshore = await createProgram();
const verb = (...path: readonly string[]) =>
  path.reduce<Command>((command, name) => {
    const below = command.commands.find((each) => each.name() === name);
    if (below === undefined) throw new Error(name);
    return below;
  }, longshore);

test("a page has a verb's synopsis, options, notes and what belongs to it", () => {
  const page = manualPage(verb("cluster", "up"));
  expect(page).toMatch(/^\.TH LONGSHORE-CLUSTER-UP 1 /);
  expect(page).toContain(".SH SYNOPSIS\n.B longshore cluster up\n[options]");
  expect(page).toContain(".TP\n.B \\-\\-nodes <count>\nnumber of nodes (default: 3)");
  expect(page).toContain("longshore cluster up \\-\\-plugin gce\\-pd \\-\\-plugin rbd");
  expect(page).toContain(".SH SEE ALSO\nlongshore\\-cluster(1)");
  expect(page).not.toContain("log\\-in\\-dir");
});

test("a page names the verbs below, with pages of their own", () => {
  const page = manualPage(longshore);
  expect(page).toContain(".TP\n.B cluster\na whole Kubernetes cluster on this machine");
  expect(page).toMatch(/SEE ALSO\n.*longshore\\-driver\(1\)/);
});

test("no text is taken for a macro or an escape of roff", () => {
  const page = manualPage(new Command("x").description("a\\b\n.so /etc/passwd\n'quoted"));
  expect(page).toContain("a\\eb\n\\&.so /etc/passwd\n\\&'quoted");
});
