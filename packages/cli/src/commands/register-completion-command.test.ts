import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "../main.ts";
import { completionScript, registerCompletionCommand } from "./register-completion-command.ts";

const longshore = await createProgram();

/** What bash offers at the end of a line, by the real script in a real bash. @param before said to bash first */
function offered(line: readonly string[], before = ""): string[] {
  const script = `${before}
${completionScript(longshore, "bash")}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _longshore; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync("bash", ["-c", script, "bash", ...line], { encoding: "utf8" });
  return output.split("\n").filter((word) => word !== "");
}

test.skipIf(!existsSync("/bin/bash")).each([
  ["a verb", ["longshore", "cl"], ["cluster"]],
  ["a verb below a verb", ["longshore", "cluster", "st"], ["stop", "start", "status"]],
  ["below that one too", ["longshore", "cluster", "node", ""], ["restart", "kill", "--help"]],
  ["an option", ["longshore", "migrate", "--plu"], ["--plugin"]],
  ["an option that takes a time", ["longshore", "rollback", "--st"], ["--step-timeout"]],
  [
    "options after the value of one",
    ["longshore", "cluster", "up", "--dir", "up", "--no"],
    ["--nodes", "--node-decides-migration", "--node-deployment"],
  ],
  [
    "nothing for the value itself, so that bash offers files",
    ["longshore", "cluster", "up", "--dir", ""],
    [],
  ],
  [
    "the values of an option",
    ["longshore", "driver", "qualify", "--plugin", "azure"],
    ["azure-disk", "azure-file"],
  ],
  ["the verbs below one, and not what is hidden", ["longshore", "compl"], ["completion"]],
  ["all of them where several are taken", ["longshore", "migrate", "--plugin", "al"], ["all"]],
  ["a file for one verb's --json", ["longshore", "demo", "--json", ""], []],
  ["no file for another's", ["longshore", "migrate", "--json", "--dr"], ["--dry-run"]],
  ["the words that an argument may be", ["longshore", "completion", "z"], ["zsh"]],
  ["no hidden option", ["longshore", "run", "apiserver", "--cl"], []],
] as const)("bash is offered %s", (_name, line, expected) => {
  expect(offered(line)).toEqual(expected);
});

/** In place of the command: shows what it is asked. */
const asking = 'longshore() { shift; printf "%s\\n" "asked:$*" | tr " " "_"; }';

test.skipIf(!existsSync("/bin/bash")).each([
  [
    "nodes, with the line so far",
    ["longshore", "cluster", "node", "restart", "--dir", "/c", ""],
    "asked:nodes_--_cluster_node_restart_--dir_/c",
  ],
  ["codes of findings", ["longshore", "explain", ""], "asked:codes_--_explain"],
  [
    "nodes as the value of an option",
    ["longshore", "migrate", "--only-node", ""],
    "asked:nodes_--_migrate_--only-node",
  ],
  [
    "volumes as the value of an option",
    ["longshore", "status", "--volume", ""],
    "asked:persistentVolumes_--_status_--volume",
  ],
  [
    "namespaces as the value of an option",
    ["longshore", "driver", "deploy", "--kubeconfig", "/k", "--namespace", ""],
    "asked:namespaces_--_driver_deploy_--kubeconfig_/k_--namespace",
  ],
] as const)("the cluster is asked for %s", (_name, line, question) => {
  expect(offered(line, asking)).toContain(question);
});

test.skipIf(!existsSync("/bin/bash"))("the cluster is not asked for an option", () => {
  expect(offered(["longshore", "cluster", "node", "restart", "--d"], asking)).toEqual(["--dir"]);
});

test("fish asks the cluster, too", () => {
  const script = completionScript(longshore, "fish");
  expect(script).toMatch(/-l namespace -x -a '\(longshore complete namespaces -- /);
  expect(script).toMatch(/seen_subcommand_from restart' -f -a '\(longshore complete nodes -- /);
});

test("what the script is made from may hold quotes", () => {
  const program = new Command("longshore").description("it");
  program.command("up").description("don't \\ worry");
  registerCompletionCommand(program);
  expect(completionScript(program, "fish")).toContain("-a up -d 'don\\'t \\\\ worry'");
});

test("fish offers the verbs of a place only there", () => {
  const script = completionScript(longshore, "fish");
  const line = script.split("\n").find((text) => text.includes("-a kubeconfig"));
  expect(line).toContain(
    "-n '__fish_seen_subcommand_from cluster; and not __fish_seen_subcommand_from up stop start down",
  );
});

test("fish offers the values of an option", () => {
  const script = completionScript(longshore, "fish");
  const line = script
    .split("\n")
    .find((text) => text.includes("seen_subcommand_from qualify'") && text.includes("-l plugin"));
  expect(line).toContain("-l plugin -x -a 'aws-ebs gce-pd azure-disk");
});
