/** `longshore cluster …`: a local cluster as a tool. */
import { spawn } from "node:child_process";
import { appendFileSync, closeSync, mkdirSync, openSync } from "node:fs";
import {
  agentProcess,
  clusterConfig,
  downCluster,
  fileGateControl,
  openCluster,
  processesOf,
  readClusterConfig,
  readCrossingStatus,
  signalClusterProcess,
  statusOfCluster,
  upCluster,
} from "@longshore/local";
import {
  createLogger,
  DeadlineError,
  FeatureGateError,
  featureGates,
  type Logger,
  parseFeatureGates,
  systemClock,
  withDeadline,
} from "@longshore/runtime";
import { volumeGates } from "@longshore/volumes";
import { type Command, Option } from "commander";
import {
  absolute,
  clusterDir,
  commandEnv,
  defaultClusterDir,
  hostForm,
  longshoreCommand,
} from "../environment.ts";
import { interruptible, UsageError, untilAborted } from "../exit.ts";
import { wholeNumber } from "../flags.ts";
import { createProgress, seconds, table } from "../terminal.ts";
import { crossingRows } from "./crossing-rows.ts";

interface DirFlag {
  readonly dir?: string;
}

interface UpFlags extends DirFlag {
  readonly nodes: string;
  readonly port: string;
  readonly compat?: "kubernetes-1.20";
  readonly detach?: boolean;
  readonly logInDir?: boolean;
}

interface StatusFlags extends DirFlag {
  readonly journal?: string;
  readonly json?: boolean;
}

/** Gates that are not in effect after this time, in milliseconds, will not be. */
const gatesWithinMs = 120_000;

/** Adds the verbs. */
export function registerClusterCommand(program: Command): void {
  const cluster = program.command("cluster").description("a whole Kubernetes cluster on this machine");
  const verb = (name: string, description: string) =>
    cluster
      .command(name)
      .description(description)
      .option("--dir <dir>", `the cluster's directory (default: ${defaultClusterDir()})`);
  verb("up", "bring a cluster up and keep it running until Ctrl-C")
    .option("--nodes <count>", "number of nodes", "3")
    .option("--port <port>", "port of the API server on the loopback interface, 0 for any", "0")
    .addOption(
      new Option(
        "--compat <release>",
        "controllers behave as recorded from that release where ours deliberately differ",
      ).choices(["kubernetes-1.20"]),
    )
    .option("--detach", "return once the cluster is up; end it with `longshore cluster down`")
    .addOption(new Option("--log-in-dir").hideHelp())
    .action((flags: UpFlags) => interruptible((signal) => up(flags, signal)));
  verb("down", "end the cluster and remove everything it has made").action((flags: DirFlag) =>
    interruptible((signal) => down(flags, signal)),
  );
  verb("status", "show processes, nodes, volumes and the crossing")
    .option("--journal <file>", "the crossing's journal, where that is not in the cluster directory")
    .option("--json", "as JSON")
    .action((flags: StatusFlags) => interruptible((signal) => status(flags, signal)));
  verb("kubeconfig", "print the path of the cluster's kubeconfig").action((flags: DirFlag) =>
    kubeconfig(flags),
  );
  const node = cluster.command("node").description("handle one node's agent");
  for (const [name, description, signalName] of [
    ["restart", "restart the node's agent", "SIGTERM"],
    ["kill", "kill -9 the node's agent (it is started again)", "SIGKILL"],
  ] as const) {
    node
      .command(name)
      .description(description)
      .argument("<node>")
      .option("--dir <dir>", "the cluster's directory")
      .action((nodeName: string, flags: DirFlag) => signalNode(nodeName, flags, signalName));
  }
  cluster
    .command("gates")
    .description("show the feature gates, or set some and restart what reads them")
    .argument("[component]", "controller-manager or a node's name")
    .argument("[gates]", "e.g. CSIMigrationAWS=true")
    .option("--dir <dir>", "the cluster's directory")
    .action((component: string | undefined, gates: string | undefined, flags: DirFlag) =>
      interruptible((signal) => setGates(component, gates, flags, signal)),
    );
}

function dirOf(flags: DirFlag): string {
  return clusterDir(flags.dir);
}

async function up(flags: UpFlags, signal: AbortSignal): Promise<void> {
  const nodes = wholeNumber("--nodes", flags.nodes, 1, 100);
  const port = wholeNumber("--port", flags.port, 0, 65_535);
  const dir = dirOf(flags);
  if (flags.detach === true) return upDetached(dir, flags, signal);
  const progress = createProgress();
  const env = flags.logInDir === true ? { ...commandEnv(), logger: loggerInDir(dir) } : commandEnv();
  const startMs = env.clock.monotonicMs();
  const cluster = await upCluster(env, {
    dir,
    config: clusterConfig(nodes, hostForm(), {
      port,
      ...(flags.compat === undefined ? {} : { compat: flags.compat }),
    }),
    command: longshoreCommand,
    signal,
    onProgress: (step) => progress.status(`… ${step}`),
  }).finally(() => progress.clear());
  progress.line(`cluster of ${nodes} nodes is up after ${seconds(env.clock.monotonicMs() - startMs)}`);
  process.stdout.write(`export KUBECONFIG=${cluster.layout.kubeconfig}\n`);
  await untilAborted(signal);
  progress.line("taking the cluster down");
  await cluster.stop();
}

/** What a supervisor says once nobody listens any more. */
function loggerInDir(dir: string): Logger {
  const write = (line: string) => {
    try {
      appendFileSync(`${dir}/logs/supervisor.log`, line, { mode: 0o640 });
    } catch {
      process.stderr.write(line); // Not made yet, or gone already.
    }
  };
  return createLogger({ format: "human", level: "info", destination: { write } });
}

/** Starts `cluster up` in a session of its own and waits until it is up or has failed. */
async function upDetached(dir: string, flags: UpFlags, signal: AbortSignal): Promise<void> {
  const env = commandEnv();
  // Not inside the directory, which must be empty, and of this attempt alone.
  const log = `${dir}.up-${process.pid}.log`;
  mkdirSync(log.slice(0, log.lastIndexOf("/")), { recursive: true });
  const output = openSync(log, "wx", 0o600); // Never through a link that somebody has put there.
  const [program = "", ...args] = longshoreCommand;
  const child = spawn(
    program,
    [
      ...[
        ...args,
        "cluster",
        "up",
        "--dir",
        dir,
        "--nodes",
        flags.nodes,
        "--port",
        flags.port,
        "--log-in-dir",
      ],
      ...(flags.compat === undefined ? [] : ["--compat", flags.compat]),
    ],
    { detached: true, stdio: ["ignore", output, output], cwd: "/" },
  );
  closeSync(output);
  let exited = false;
  child.on("exit", () => {
    exited = true;
  });
  child.on("error", () => {
    exited = true;
  });
  signal.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
  const text = async () => (await env.host.readFile(log)) ?? "";
  while (!exited && !(await text()).includes("export KUBECONFIG=")) {
    await env.clock.sleep(50, new AbortController().signal);
  }
  const said = await text();
  await env.host.removeFile(log);
  if (exited) throw new Error(said.trim().replace(/^longshore: /, "") || "the cluster did not come up");
  child.unref();
  process.stdout.write(`export KUBECONFIG=${dir}/kubeconfig\n`);
}

async function down(flags: DirFlag, signal: AbortSignal): Promise<void> {
  const dir = dirOf(flags);
  const found = await downCluster(commandEnv(), dir, signal);
  process.stderr.write(found ? `the cluster in ${dir} is gone\n` : `no cluster in ${dir}\n`);
}

async function status(flags: StatusFlags, signal: AbortSignal): Promise<void> {
  const env = commandEnv();
  const cluster = await openCluster(env, dirOf(flags));
  try {
    const processes = await processesOf(env, cluster.layout);
    const journalFile = flags.journal === undefined ? cluster.layout.journalFile : absolute(flags.journal);
    const crossing = await readCrossingStatus(env, journalFile);
    const state = await statusOfCluster(cluster, signal);
    if (flags.json === true) {
      process.stdout.write(
        `${JSON.stringify({ processes, ...state, ...(crossing === undefined ? {} : { crossing }) })}\n`,
      );
      return;
    }
    process.stdout.write(
      `${table([
        ["PROCESS", "PID", "STATE", "RESTARTS"],
        ...processes.map((p) => [p.name, String(p.pid), p.alive ? "running" : "down", String(p.restarts)]),
      ])}\n${table([
        ["NODE", "READY", "ZONE", "MIGRATED PLUGINS", "ATTACHED"],
        ...state.nodes.map((n) => [n.name, n.ready, n.zone, n.migratedPlugins || "-", String(n.attached)]),
      ])}\n${table([
        ["VOLUME", "CLAIM", "PHASE", "HANDLE"],
        ...state.volumes.map((v) => [v.name, v.claim, v.phase, v.handle]),
      ])}${crossing === undefined ? "" : `\n${table(crossingRows(crossing, state.nodes.length))}`}`,
    );
  } finally {
    cluster.kube.close();
  }
}

async function kubeconfig(flags: DirFlag): Promise<void> {
  const cluster = await openCluster(commandEnv(), dirOf(flags));
  cluster.kube.close();
  process.stdout.write(`${cluster.layout.kubeconfig}\n`);
}

async function signalNode(
  nodeName: string,
  flags: DirFlag,
  signalName: "SIGTERM" | "SIGKILL",
): Promise<void> {
  const { host } = commandEnv();
  const cluster = await openCluster(commandEnv(), dirOf(flags));
  cluster.kube.close();
  const config = await readClusterConfig(host, cluster.layout);
  if (!config.nodes.some((n) => n.name === nodeName)) {
    throw new UsageError(
      `no node "${nodeName}": the cluster has ${config.nodes.map((n) => n.name).join(", ")}`,
    );
  }
  if (!(await signalClusterProcess(host, cluster.layout, agentProcess(nodeName), signalName))) {
    throw new Error(`the agent of ${nodeName} does not run just now: see "longshore cluster status"`);
  }
}

/** The gates in the text. Refuses unknown ones, before anything is restarted. @throws UsageError */
function gateValues(text: string): Readonly<Record<string, boolean>> {
  try {
    const values = parseFeatureGates(text);
    featureGates(volumeGates, values);
    return values;
  } catch (error) {
    if (error instanceof FeatureGateError) throw new UsageError(error.message);
    throw error;
  }
}

async function setGates(
  component: string | undefined,
  text: string | undefined,
  flags: DirFlag,
  signal: AbortSignal,
): Promise<void> {
  const cluster = await openCluster(commandEnv(), dirOf(flags));
  try {
    const { platform, config, layout } = cluster;
    const names = ["controller-manager", ...config.nodes.map((n) => n.name)];
    if (component !== undefined && !names.includes(component)) {
      throw new UsageError(`no component "${component}": choose one of ${names.join(", ")}`);
    }
    if (component === undefined || text === undefined) {
      const control = fileGateControl(commandEnv().host, layout);
      for (const name of component === undefined ? names : [component]) {
        const values = featureGates(volumeGates, await control.readGates(name)).values;
        const on = Object.keys(values).filter((gate) => values[gate] === true);
        process.stdout.write(`${name}: ${on.join(",") || "none"}\n`);
      }
      return;
    }
    const values = gateValues(text);
    await withDeadline(systemClock, gatesWithinMs, signal, (within) =>
      component === "controller-manager"
        ? platform.setControlPlaneGates(values, within)
        : platform.setNodeGates(component, values, within),
    ).catch((cause) => {
      if (signal.aborted || !(cause instanceof DeadlineError)) throw cause;
      throw new Error(
        `${component} does not run with its new feature gates after ${gatesWithinMs / 1000} s: look at its log`,
        { cause },
      );
    });
  } finally {
    cluster.kube.close();
  }
}
