/** `longshore gates`: the migration gates of a version of Kubernetes. */
import type { GateRow } from "@longshore/volumes";
import type { Command } from "commander";
import { withForms } from "../flags.ts";
import { textTable } from "../text-table.ts";

interface GatesFlags {
  readonly kubernetes: string;
  readonly plugin?: string;
  readonly output: "table" | "json";
}

/** Adds the command `gates` to `program`. */
export function registerGatesCommand(program: Command): void {
  withForms(program.command("gates"), ["table", "json"])
    .description("which migration gates a version of Kubernetes has, with stage, default and history")
    .requiredOption("--kubernetes <1.N>", "the version of Kubernetes")
    .option(
      "--plugin <name>",
      "the gates of one in-tree plugin, e.g. cinder or kubernetes.io/cinder; default: of all",
    )
    .addHelpText(
      "after",
      "\nStage: notYet and removed: this version refuses the name; ownOnly: a gate of Longshore, which Kubernetes never had.\n" +
        "Exit codes: 0 printed, 2 wrong usage.",
    )
    .action(async (flags: GatesFlags) => {
      process.stdout.write(await gatesText(flags));
    });
}

async function gatesText({ kubernetes, plugin, output }: GatesFlags): Promise<string> {
  const { gateTable } = await import("@longshore/volumes");
  const { crossingSubject } = await import("@longshore/migration");
  const rows = gateTable(kubernetes, plugin === undefined ? undefined : crossingSubject(plugin).inTreeName);
  if (output === "json") return `${JSON.stringify({ kubernetes, gates: rows }, undefined, 2)}\n`;
  const head = ["GATE", "STAGE", "DEFAULT", "LOCKED", "HISTORY"];
  return textTable([head, ...rows.map(cellsOf)]);
}

function cellsOf(row: GateRow): readonly string[] {
  return [
    row.gate,
    row.stage,
    row.default ? "on" : "off",
    row.locked ? "yes" : "no",
    historyWords(row.history),
  ];
}

/** The changes in the order of their versions. */
function historyWords(history: GateRow["history"]): string {
  const changes = Object.entries({ ...history }).map(([change, minor]) => ({ change, minor }));
  changes.sort((a, b) => a.minor - b.minor);
  return changes.map(({ change, minor }) => `${words[change] ?? change} 1.${minor}`).join(", ");
}

const words: Readonly<Record<string, string>> = { onByDefault: "on", ga: "GA" };
