/**
 * The `longshore` command: the composition root. Verbs parse their flags, put the real forms of the
 * seams together and call a library; no rule lives here.
 */
import { Command, CommanderError } from "commander";
import { registerClusterCommand } from "./commands/cluster.ts";
import { registerCompletionCommand } from "./commands/completion.ts";
import { registerDashboardCommand } from "./commands/dashboard.ts";
import { registerDemoCommand } from "./commands/demo.ts";
import { registerMigrateCommands } from "./commands/migrate.ts";
import { registerRunCommand } from "./commands/run.ts";
import { registerSimCommand } from "./commands/sim.ts";
import { registerTranslateCommand } from "./commands/translate.ts";
import { exitCodes, reportFailure } from "./exit.ts";
import { version } from "./version.ts";

/** The command with all of its verbs. */
export function createProgram(): Command {
  const program = new Command("longshore")
    .description("The Kubernetes volume stack, and the crossing from in-tree volume plugins to CSI.")
    .version(version)
    .showHelpAfterError("(run with --help for usage)")
    .exitOverride();
  for (const register of [
    registerClusterCommand,
    registerMigrateCommands,
    registerTranslateCommand,
    registerDemoCommand,
    registerRunCommand,
    registerSimCommand,
    registerDashboardCommand,
    registerCompletionCommand,
  ]) {
    register(program);
  }
  return program;
}

/** Runs the command line; sets the process's exit code: 0 done, 1 failed, 2 wrong usage. */
export async function main(argv: readonly string[]): Promise<void> {
  try {
    await createProgram().parseAsync([...argv]);
  } catch (error) {
    process.exitCode =
      error instanceof CommanderError ? (error.exitCode === 0 ? 0 : exitCodes.usage) : reportFailure(error);
  }
}
