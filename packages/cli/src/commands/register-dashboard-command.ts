/** `longshore dashboard`: a web page that shows a cluster and its crossing, live. */
import { startDashboard } from "@longshore/dashboard";
import { resources } from "@longshore/kube";
import { currentCrossing, openCluster, readCrossingStatuses } from "@longshore/local";
import { shellWord, withDeadline } from "@longshore/runtime";
import type { Command } from "commander";
import { absolute, clusterDir, commandEnv, defaultClusterDir } from "../environment.ts";
import { interruptible, untilAborted } from "../exit.ts";
import { wholeNumber } from "../flags.ts";

interface DashboardFlags {
  readonly dir?: string;
  readonly port: string;
  readonly journal?: string;
}

const answersWithinMs = 10_000;

/** Adds the verb. */
export function registerDashboardCommand(program: Command): void {
  program
    .command("dashboard")
    .description("show a cluster and its crossing in the browser, live, until Ctrl-C")
    .option("--dir <dir>", `the cluster's directory (default: ${defaultClusterDir()})`)
    .option("--port <port>", "port on the loopback interface, 0 for any", "0")
    .option("--journal <file>", "the crossing's journal, where that is not in the cluster directory")
    .action((flags: DashboardFlags) => interruptible((signal) => dashboard(flags, signal)));
}

async function dashboard(flags: DashboardFlags, signal: AbortSignal): Promise<void> {
  const port = wholeNumber("--port", flags.port, 0, 65_535);
  const dir = clusterDir(flags.dir);
  const env = commandEnv();
  const { kube, layout, config } = await openCluster(env, dir);
  try {
    // An informer would wait for the cluster for ever; a wrong directory has to be reported.
    await withDeadline(env.clock, answersWithinMs, signal, (deadline) =>
      kube.list(resources.nodes, { limit: 1, signal: deadline }),
    ).catch((cause) => {
      if (signal.aborted) throw cause;
      throw new Error(
        `the cluster in ${dir} does not answer: see "longshore cluster status --dir ${shellWord(dir)}"`,
        {
          cause,
        },
      );
    });
    const journals =
      flags.journal === undefined ? config.plugins.map(layout.journalFile) : [absolute(flags.journal)];
    const crossing = async () => currentCrossing(await readCrossingStatuses(env, journals));
    const server = await startDashboard({ ...env, kube }, { port, crossing });
    process.stdout.write(`${server.url}\n`);
    await untilAborted(signal);
    await server.stop();
  } finally {
    kube.close();
  }
}
