/** `longshore run apiserver` and the processes of a local cluster: one component as a process of its own. */
import { fileURLToPath } from "node:url";
import { runApiServer } from "@longshore/apiserver";
import type { ProcessKind } from "@longshore/local/processes";
import {
  createLogger,
  createMeter,
  errorChain,
  type PrometheusMeter,
  type RuntimeEnv,
  systemClock,
  systemRandom,
} from "@longshore/runtime/basics";
import { type Command, Option } from "commander";
import { type AccessFlags, accessOptions, addAccessFlags } from "./access-flags.ts";
import { collectBetweenAnswers, exposedCollector } from "./collect-between-answers.ts";
import { untilInterrupted } from "./until-interrupted.ts";

const apiServerHelp = `
When it is ready it says so in one line on standard output: serving at https://127.0.0.1:PORT.
What it logs goes to standard error.

Example:
  longshore run apiserver --in-memory --kubeconfig-out ./kubeconfig
  kubectl --kubeconfig ./kubeconfig get namespaces

Backup, while it runs or not, and restore: longshore apiserver --help.`;

const collectorMissing =
  '--collect-between-answers needs the collector: start with node --expose-gc "$(command -v longshore)" run apiserver …';

/** Adds the verbs. */
export function registerComponents(run: Command): void {
  addAccessFlags(run.command("apiserver"))
    .description("run the embedded API server alone, until Ctrl-C or SIGTERM")
    .option(
      "--data-dir <dir>",
      "keep objects, certificates and tokens here; an acknowledged write survives a loss of power",
    )
    .option("--in-memory", "keep everything in memory instead, for as long as the server runs")
    .option("--secure-port <port>", "port on the loopback interface, 0 for any", "0")
    .option(
      "--kubeconfig-out <file>",
      "write a kubeconfig with server, CA and an admin token here (mode 0600)",
    )
    .option("--emulated-version <version>", "Kubernetes version whose behaviour it shows, 1.20 to 1.36")
    .option("--feature-gates <gates>", "feature gates of that version, A=true,B=false")
    .option(
      "--install-crds <path...>",
      'CustomResourceDefinitions to install at start: files or directories, or "snapshots" for those of snapshots',
    )
    .option(
      "--without-controllers",
      "leave garbage collection, namespaces, aggregated roles and service accounts to a controller manager",
    )
    .option(
      "--collect-between-answers",
      "collect garbage between answers, which makes the slowest ones faster; needs Node's --expose-gc",
    )
    .addOption(new Option("--cluster-dir <dir>").hideHelp())
    .addHelpText("after", apiServerHelp)
    .action(async (options: ApiServerFlags) => {
      if (options.clusterDir !== undefined) return runOfCluster("apiserver", options.clusterDir);
      const { dataDir, inMemory, securePort, kubeconfigOut, emulatedVersion, featureGates } = options;
      if (dataDir === undefined && inMemory !== true) {
        return run.error("error: --data-dir is required, or --in-memory");
      }
      if (dataDir !== undefined && inMemory === true) {
        return run.error("error: --data-dir and --in-memory exclude each other");
      }
      const port = Number(securePort);
      if (!Number.isInteger(port) || port < 0 || port > 65_535) {
        return run.error(`error: --secure-port: "${securePort}" is not a port (0 to 65535)`);
      }
      const collector = options.collectBetweenAnswers === true ? exposedCollector() : undefined;
      if (options.collectBetweenAnswers === true && collector === undefined) {
        return run.error(`error: ${collectorMissing}`);
      }
      const access = accessOptions(options);
      if (typeof access === "string") return run.error(`error: ${access}`);
      await untilInterrupted(async () => {
        const env = serverEnv();
        const server = await runApiServer(env, {
          ...access,
          port,
          metrics: env.meter,
          controllers: options.withoutControllers !== true,
          ...(collector === undefined ? {} : { onAnswered: collectBetweenAnswers(collector) }),
          definitionPaths: await Promise.all((options.installCrds ?? []).map(definitionPath)),
          ...(dataDir === undefined ? {} : { dataDir }),
          ...(kubeconfigOut === undefined ? {} : { kubeconfigOut }),
          ...(emulatedVersion === undefined ? {} : { emulatedVersion }),
          ...(featureGates === undefined ? {} : { featureGates }),
        });
        process.stdout.write(`serving at ${server.url}\n`);
        return { ended: server.failed.then(errorChain), stop: () => server.stop() };
      });
    });
  for (const kind of clusterProcesses) {
    run
      .command(kind)
      .description(`run the ${kind} of a local cluster (started by "longshore cluster up")`)
      .requiredOption("--cluster-dir <dir>", "the cluster's directory")
      .option("--node <name>", "the node it belongs to")
      .action((options: { clusterDir: string; node?: string }) =>
        runOfCluster(kind, options.clusterDir, options.node),
      );
  }
}

/** `snapshots` stands for the definitions that come with Longshore; anything else is a path. */
async function definitionPath(given: string): Promise<string> {
  if (given !== "snapshots") return given;
  const { snapshotCrdsUrl } = await import("@longshore/storage");
  return fileURLToPath(snapshotCrdsUrl);
}

/** The processes of a local cluster but for its API server, which can run alone. */
export const clusterProcesses = [
  "disk-cloud",
  "controller-manager",
  "csi-controller",
  "csi-node",
  "node-agent",
] as const satisfies readonly ProcessKind[];

/** What the API server alone works with: nothing of a cluster is loaded for it. */
function serverEnv(): RuntimeEnv & { readonly meter: PrometheusMeter } {
  const logger = createLogger({ format: "json", level: "info" }).child({ component: "apiserver" });
  return { clock: systemClock, random: systemRandom, logger, meter: lateMeter() };
}

/** A meter whose library is loaded when something is measured for the first time: after the server is ready. */
function lateMeter(): PrometheusMeter {
  let made: PrometheusMeter | undefined;
  const meter = () => {
    made ??= createMeter();
    return made;
  };
  return {
    get contentType() {
      return meter().contentType;
    },
    exposition: () => meter().exposition(),
    beforeReading: (update) => meter().beforeReading(update),
    counter: (name, options) => meter().counter(name, options),
    gauge: (name, options) => meter().gauge(name, options),
    histogram: (name, options) => meter().histogram(name, options),
  };
}

interface ApiServerFlags extends AccessFlags {
  readonly dataDir?: string;
  readonly inMemory?: true;
  readonly securePort: string;
  readonly kubeconfigOut?: string;
  readonly emulatedVersion?: string;
  readonly featureGates?: string;
  readonly installCrds?: readonly string[];
  readonly withoutControllers?: true;
  readonly collectBetweenAnswers?: true;
  readonly clusterDir?: string;
}

function runOfCluster(kind: ProcessKind, dir: string, nodeName?: string): Promise<void> {
  return untilInterrupted(async () => {
    const { startComponentProcess } = await import("@longshore/local/processes");
    return startComponentProcess(kind, { dir, ...(nodeName === undefined ? {} : { nodeName }) });
  });
}
