/**
 * The `longshore` command: the composition root. Verbs parse their flags, put the real forms of the
 * seams together and call a library; no rule is here.
 */
import { Command, CommanderError } from "commander";
import { exitCodes, isOutputOptional, reportFailure } from "./exit.ts";
import { version } from "./version.ts";

type Register = (program: Command) => void;

/** Where each verb is, loaded only when it is needed: what one verb works with is a burden to the start of all others. */
const verbs: readonly {
  readonly names: readonly string[];
  readonly load: (below?: string) => Promise<Register>;
}[] = [
  {
    names: ["cluster"],
    load: async () => (await import("./commands/register-cluster-command.ts")).registerClusterCommand,
  },
  {
    names: ["migrate", "rollback"],
    load: async () =>
      (await import("./commands/migrate/register-migrate-commands.ts")).registerMigrateCommands,
  },
  {
    names: ["convert"],
    load: async () =>
      (await import("./commands/convert/register-convert-commands.ts")).registerConvertCommands,
  },
  {
    names: ["assess", "explain"],
    load: async () => (await import("./commands/register-assess-commands.ts")).registerAssessCommands,
  },
  {
    names: ["plan"],
    load: async () => (await import("./commands/register-plan-command.ts")).registerPlanCommand,
  },
  {
    names: ["status"],
    load: async () => (await import("./commands/register-status-command.ts")).registerStatusCommand,
  },
  {
    names: ["gates"],
    load: async () => (await import("./commands/register-gates-command.ts")).registerGatesCommand,
  },
  {
    names: ["translate"],
    load: async () => (await import("./commands/register-translate-command.ts")).registerTranslateCommand,
  },
  {
    names: ["demo"],
    load: async () => (await import("./commands/register-demo-command.ts")).registerDemoCommand,
  },
  {
    names: ["apiserver"],
    load: async () => (await import("./commands/register-api-server-command.ts")).registerApiServerCommand,
  },
  {
    names: ["run"],
    load: async (below) => (await import("./commands/load-run-command.ts")).loadRunCommand(below),
  },
  {
    names: ["driver"],
    load: async () => (await import("./commands/register-driver-command.ts")).registerDriverCommand,
  },
  {
    names: ["deploy"],
    load: async () =>
      (await import("./commands/distributions/register-deploy-command.ts")).registerDeployCommand,
  },
  {
    names: ["flexvolume"],
    load: async () => (await import("./commands/register-flexvolume-command.ts")).registerFlexVolumeCommand,
  },
  {
    names: ["sim"],
    load: async () => (await import("./commands/sim/register-sim-command.ts")).registerSimCommand,
  },
  {
    names: ["dashboard"],
    load: async () => (await import("./commands/register-dashboard-command.ts")).registerDashboardCommand,
  },
  {
    names: ["completion"],
    load: async () => (await import("./commands/register-completion-command.ts")).registerCompletionCommand,
  },
  {
    names: ["complete"],
    load: async () => (await import("./commands/register-complete-command.ts")).registerCompleteCommand,
  },
  {
    names: ["man"],
    load: async () => (await import("./commands/register-man-command.ts")).registerManCommand,
  },
];

/** The command with all of its verbs, or with one only; of that, `below` may name the one below it that is wanted. */
export async function createProgram(verb?: string, below?: string): Promise<Command> {
  const program = new Command("longshore")
    .description("The Kubernetes volume stack, and the crossing from in-tree volume plugins to CSI.")
    .version(version)
    .showHelpAfterError("(run with --help for usage)")
    .exitOverride();
  const wanted = verbs.filter(({ names }) => verb === undefined || names.includes(verb));
  for (const register of await Promise.all(wanted.map(({ load }) => load(below)))) register(program);
  return program;
}

/** The verb that a command line begins with; undefined for anything else, which is for the whole command to judge. */
function verbOf(argv: readonly string[]): string | undefined {
  const word = argv[2];
  // These describe all verbs.
  return word !== "completion" && word !== "man" && verbs.some(({ names }) => names.includes(word ?? ""))
    ? word
    : undefined;
}

/** The library ends wrong usage with 1; a verb whose codes mean something else sets its own. */
function usageCode({ exitCode }: CommanderError): number {
  return exitCode === 1 ? exitCodes.usage : exitCode;
}

/** The reader of the output may stop reading (`longshore … | head`): the command ends, without a failure. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (isOutputOptional()) return;
  if (error.code === "EPIPE") process.exit(process.exitCode ?? exitCodes.done);
  // A verb that listens for itself has its own words for it.
  if (process.stdout.listenerCount("error") === 1) process.exitCode = reportFailure(error);
}

/** Progress and warnings that cannot be written, as on a full disk, are no reason to end. */
function onProgressError(): void {}

/** Runs the command line; sets the process's exit code: 0 done, 1 failed, 2 wrong usage, 3 out of time. */
export async function main(argv: readonly string[]): Promise<void> {
  if (!process.stdout.listeners("error").includes(onOutputError)) process.stdout.on("error", onOutputError);
  if (!process.stderr.listeners("error").includes(onProgressError)) {
    process.stderr.on("error", onProgressError);
  }
  try {
    const verb = verbOf(argv);
    const program = await createProgram(verb, verb === undefined ? undefined : argv[3]);
    await program.parseAsync([...argv]);
  } catch (error) {
    process.exitCode = error instanceof CommanderError ? usageCode(error) : reportFailure(error);
  }
}
