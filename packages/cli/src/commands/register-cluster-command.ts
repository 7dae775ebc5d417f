/** `longshore cluster …`: a local cluster as a tool. */
import { spawn } from "node:child_process";
import {
  agentProcess,
  childEnvironment,
  clusterConfig,
  clusterLayout,
  commandText,
  commandWords,
  currentCrossing,
  downCluster,
  fileGateControl,
  type OwnDriver,
  openCluster,
  type ProcessHealth,
  type ProcessStatus,
  pluginsNamed,
  processesOf,
  processHealth,
  readClusterConfig,
  readCrossingStatuses,
  requireDriverCommand,
  signalClusterProcess,
  statusOfCluster,
  stopCluster,
  upCluster,
} from "@longshore/local";
import {
  createLogger,
  DeadlineError,
  FeatureGateError,
  featureGates,
  parseFeatureGates,
  shellWord,
  systemClock,
  withDeadline,
} from "@longshore/runtime";
import { migrationGates } from "@longshore/translation";
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
import { wholeNumber, wholeSeconds, withForms } from "../flags.ts";
import { createProgress, seconds, table } from "../terminal.ts";
import { loggedProcesses, showLog } from "./cluster-logs.ts";
import { crossingRows } from "./crossing-rows.ts";
import { driverPlaceholderHelp } from "./driver-placeholder-help.ts";
import { pluginsOption } from "./plugin-flag.ts";

interface DirFlag {
  readonly dir?: string;
}

interface StartFlags extends DirFlag {
  readonly port?: string;
  readonly detach?: boolean;
  readonly logInDir?: boolean;
}

interface UpFlags extends StartFlags {
  readonly nodes?: string;
  readonly plugin?: readonly string[];
  readonly withoutInTreePlugins?: true;
  readonly nodeDecidesMigration?: true;
  readonly driver?: string;
  readonly driverCmd?: string;
  readonly nodeDeployment?: true;
  /** Where the driver's command is meant, for the process to which `--detach` leaves the cluster; default here. */
  readonly driverDir?: string;
  readonly compat?: "kubernetes-1.20";
  readonly shutdownGracePeriod?: string;
  readonly shutdownGracePeriodCriticalPods?: string;
}

interface LogFlags extends DirFlag {
  readonly tail?: string;
  readonly follow?: true;
}

interface StatusFlags extends DirFlag {
  readonly journal?: string;
  readonly json?: boolean;
}

/** Gates that are not in effect after this time, in milliseconds, will not be. */
const gatesWithinMs = 120_000;

const defaultNodes = 3;

const lifeHelp = `
Ctrl-C, SIGTERM and "cluster stop" end a cluster and keep all that it holds; "cluster start" brings it back: API objects,
disks, volumes, pods. "cluster down" deletes it with its disks.`;

const upHelp = `
A driver of your own (--driver, --driver-cmd) runs beside those of the plugins, or in place of the one whose name it has.
A driver whose volumes lie on the node on which they are made (directories, local disks) needs --node-deployment.
In its command stand for what differs from place to place:
${driverPlaceholderHelp}

Examples:
  longshore cluster up --plugin gce-pd --plugin rbd
  longshore cluster up --plugin all
  longshore cluster up --driver disk.example.com --driver-cmd "./driver --endpoint {endpoint} --node-id {node-id}"
  longshore cluster up --driver dirs.example.com --driver-cmd "./dirs --endpoint {endpoint} --node-id {node}" --node-deployment`;

/** Adds the verbs. */
export function registerClusterCommand(program: Command): void {
  const cluster = program.command("cluster").description("a whole Kubernetes cluster on this machine");
  const verb = (name: string, description: string) =>
    cluster
      .command(name)
      .description(description)
      .option("--dir <dir>", `the cluster's directory (default: ${defaultClusterDir()})`);
  const running = (command: Command) =>
    command
      .option("--port <port>", "port of the API server on the loopback interface, 0 for any")
      .option("--detach", "return once the cluster is up; stop it with `longshore cluster stop`")
      .addOption(new Option("--log-in-dir").hideHelp());
  running(
    verb(
      "up",
      "bring a cluster up, or start the one in its directory again, and keep it running until Ctrl-C",
    ),
  )
    .option("--nodes <count>", `number of nodes (default: ${defaultNodes})`)
    .addOption(
      pluginsOption("an in-tree plugin of the cluster, with its driver and classes (default: aws-ebs)"),
    )
    .option(
      "--without-in-tree-plugins",
      "no in-tree code in controllers and nodes: the drivers serve the plugins' volumes from the start",
    )
    .option(
      "--node-decides-migration",
      "the attach/detach controller goes by what each node says, whatever its own gates are, as in OpenShift",
    )
    .option("--driver <name>", "a driver of your own, with a StorageClass of its name; needs --driver-cmd")
    .option("--driver-cmd <command>", "its command, started once as the controller and once on each node")
    .option(
      "--node-deployment",
      "each node makes the volumes of your driver itself: one process a node serves all of it, and nothing is attached",
    )
    .addOption(new Option("--driver-dir <dir>").hideHelp())
    .addOption(
      new Option(
        "--compat <release>",
        "controllers behave as recorded from that release where ours deliberately differ",
      ).choices(["kubernetes-1.20"]),
    )
    .option(
      "--shutdown-grace-period <duration>",
      "a node whose agent is stopped first ends its pods, within this time (default: they run on)",
    )
    .option(
      "--shutdown-grace-period-critical-pods <duration>",
      "the part of that time that is kept for critical pods (default: 0)",
    )
    .addHelpText("after", `${lifeHelp}\n${upHelp}`)
    .action((flags: UpFlags) => interruptible((signal) => up(flags, signal)));
  verb("stop", "end the cluster's processes and unmount its volumes; disks and objects stay")
    .addHelpText("after", lifeHelp)
    .action((flags: DirFlag) => interruptible((signal) => stop(flags, signal)));
  running(verb("start", "start a cluster again that was stopped, or that a crash or a restart has ended"))
    .addHelpText("after", lifeHelp)
    .action((flags: StartFlags) => interruptible((signal) => start(flags, signal)));
  verb("down", "end the cluster and DELETE it, its disks and their data (to keep them: cluster stop)")
    .addHelpText("after", lifeHelp)
    .action((flags: DirFlag) => interruptible((signal) => down(flags, signal)));
  withForms(verb("status", "show processes, nodes, volumes and the crossing"), ["table", "json"])
    .option("--journal <file>", "the crossing's journal, where that is not in the cluster directory")
    .action((flags: StatusFlags) => interruptible((signal) => status(flags, signal)));
  verb(
    "logs",
    "show what a process of the cluster has logged, also of one that is stopped (pods: kubectl logs)",
  )
    .argument("[process]", "such as apiserver or node-agent-node-1; without, those that have a log")
    .option("--tail <lines>", "only so many lines from the end")
    .option("-f, --follow", "go on with what is written, until Ctrl-C")
    .action((name: string | undefined, flags: LogFlags) =>
      interruptible((signal) => logs(name, flags, signal)),
    );
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

/** Longest time for which a node may shut down, in seconds. */
const shutdownMost = 3600;

/** How a node shuts down, as far as that was asked for. */
function shutdownOf({ shutdownGracePeriod: given, shutdownGracePeriodCriticalPods: critical }: UpFlags) {
  const total =
    given === undefined ? undefined : wholeSeconds("--shutdown-grace-period", given, shutdownMost);
  if (critical === undefined) return total === undefined ? {} : { shutdownGracePeriod: total };
  const flag = "--shutdown-grace-period-critical-pods";
  const shutdownGracePeriodCriticalPods = wholeSeconds(flag, critical, total ?? 0);
  return { ...(total === undefined ? {} : { shutdownGracePeriod: total }), shutdownGracePeriodCriticalPods };
}

function dirOf(flags: DirFlag): string {
  return clusterDir(flags.dir);
}

async function up(flags: UpFlags, signal: AbortSignal): Promise<void> {
  const nodes = flags.nodes === undefined ? undefined : wholeNumber("--nodes", flags.nodes, 1, 100);
  await run("up", flags, nodes, signal);
}

/** @throws ClusterDirectoryError when there is none */
async function start(flags: StartFlags, signal: AbortSignal): Promise<void> {
  await readClusterConfig(commandEnv().host, clusterLayout(dirOf(flags)));
  await run("start", flags, undefined, signal);
}

async function run(
  verb: "up" | "start",
  flags: UpFlags,
  nodes: number | undefined,
  signal: AbortSignal,
): Promise<void> {
  const port = flags.port === undefined ? undefined : wholeNumber("--port", flags.port, 0, 65_535);
  const dir = dirOf(flags);
  // Before anything is started, also where that is left to another process.
  const ownDriver = ownDriverOf(flags);
  const plugins = flags.plugin === undefined ? {} : { plugins: pluginsNamed(flags.plugin) };
  const shutdown = shutdownOf(flags);
  if (flags.detach === true) return runDetached(verb, dir, flags, ownDriver, signal);
  const progress = createProgress();
  const logger = createLogger({ format: "human", level: "info", destination: `${dir}/logs/supervisor.log` });
  const env = flags.logInDir === true ? { ...commandEnv(), logger } : commandEnv();
  const startMs = env.clock.monotonicMs();
  const compat = flags.compat === undefined ? {} : { compat: flags.compat };
  const own = ownDriver === undefined ? {} : { ownDriver };
  const without = {
    ...(flags.withoutInTreePlugins === true ? { withoutInTreePlugins: true as const } : {}),
    ...(flags.nodeDecidesMigration === true ? { nodeDecidesMigration: true as const } : {}),
  };
  const cluster = await upCluster(env, {
    dir,
    config: clusterConfig(nodes ?? defaultNodes, hostForm(), {
      port: port ?? 0,
      ...compat,
      ...shutdown,
      ...plugins,
      ...without,
      ...own,
    }),
    existing: {
      ...compat,
      ...shutdown,
      ...plugins,
      ...without,
      ...own,
      ...(nodes === undefined ? {} : { nodes }),
      ...(port === undefined ? {} : { port }),
    },
    command: longshoreCommand,
    signal,
    onProgress: (step) => progress.status(`… ${step}`),
  }).finally(() => progress.clear());
  const count = cluster.config.nodes.length;
  progress.line(`cluster of ${count} nodes is up after ${seconds(env.clock.monotonicMs() - startMs)}`);
  process.stdout.write(`export KUBECONFIG=${shellWord(cluster.layout.kubeconfig)}\n`);
  await untilAborted(signal);
  progress.line("stopping the cluster");
  await cluster.stop();
  progress.line(keptHint(dir));
}

/** The user's own driver, if there is one. @throws UsageError, DriverCommandError */
function ownDriverOf({
  driver,
  driverCmd,
  nodeDeployment,
  driverDir: workingDir = process.cwd(),
}: UpFlags): OwnDriver | undefined {
  if (driver === undefined && nodeDeployment === true) {
    throw new UsageError("--node-deployment: name the driver with --driver");
  }
  if (driver === undefined && driverCmd === undefined) return undefined;
  if (driver === undefined) throw new UsageError("--driver-cmd: name the driver with --driver");
  if (driverCmd === undefined) throw new UsageError("--driver: say with --driver-cmd how it is started");
  // A label's form, as a CSIDriver's name has: it becomes part of paths as well.
  if (!/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(driver)) {
    throw new UsageError(
      `--driver: "${driver}" is not the name of a driver: at most 63 small letters, digits, dots and dashes`,
    );
  }
  const command = requireDriverCommand(commandWords(driverCmd));
  const own = { name: driver, command, workingDir };
  if (nodeDeployment !== true) return own;
  if (migrationGates.some(({ driverName }) => driverName === driver)) {
    throw new UsageError(
      `--node-deployment: the volumes of ${driver} are not those of one node: leave it out, or name another driver`,
    );
  }
  return { ...own, nodeDeployment };
}

const dirWords = (dir: string) => (dir === clusterDir(undefined) ? "" : ` --dir ${shellWord(dir)}`);
const keptHint = (dir: string) =>
  `the cluster in ${dir} is stopped, all that it holds is kept: start it again with "longshore cluster start${dirWords(dir)}", delete it with "longshore cluster down${dirWords(dir)}"`;

/** Starts the verb in a session of its own and waits until the cluster is up or has failed. */
async function runDetached(
  verb: "up" | "start",
  dir: string,
  flags: UpFlags,
  ownDriver: OwnDriver | undefined,
  signal: AbortSignal,
): Promise<void> {
  const [program = "", ...first] = longshoreCommand;
  const given = (["nodes", "port", "compat"] as const).flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [`--${name}`, value];
  });
  const plugins = (flags.plugin ?? []).flatMap((name) => ["--plugin", name]);
  const driver = [
    ...(flags.driver === undefined ? [] : ["--driver", flags.driver]),
    ...(ownDriver === undefined
      ? []
      : ["--driver-cmd", commandText(ownDriver.command), "--driver-dir", process.cwd()]),
    ...(flags.nodeDeployment === true ? ["--node-deployment"] : []),
  ];
  const without = [
    ...(flags.withoutInTreePlugins === true ? ["--without-in-tree-plugins"] : []),
    ...(flags.nodeDecidesMigration === true ? ["--node-decides-migration"] : []),
  ];
  const { shutdownGracePeriod: total, shutdownGracePeriodCriticalPods: critical } = flags;
  const shutdown = [
    ...(total === undefined ? [] : ["--shutdown-grace-period", total]),
    ...(critical === undefined ? [] : ["--shutdown-grace-period-critical-pods", critical]),
  ];
  given.push(...plugins, ...without, ...driver, ...shutdown);
  const child = spawn(program, [...first, "cluster", verb, "--dir", dir, "--log-in-dir", ...given], {
    env: childEnvironment(),
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    cwd: "/",
  });
  let said = "";
  const isUp = await new Promise<boolean>((resolve) => {
    const listen = (bytes: Buffer) => {
      said += bytes.toString("utf8");
      // The verb prints this once its cluster is up.
      if (said.includes("export KUBECONFIG=")) resolve(true);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    // Not "exit": by now all that it has said has been read, and the failure is among that.
    child.on("close", () => resolve(false));
    child.on("error", () => resolve(false));
    signal.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
  });
  if (!isUp) throw new Error(said.trim().replace(/^longshore: /, "") || "the cluster did not come up");
  // What it says from now on is in its own log.
  child.stdout.destroy();
  child.stderr.destroy();
  child.unref();
  process.stdout.write(`export KUBECONFIG=${shellWord(`${dir}/kubeconfig`)}\n`);
}

async function stop(flags: DirFlag, signal: AbortSignal): Promise<void> {
  const dir = dirOf(flags);
  await stopCluster(commandEnv(), dir, signal);
  process.stderr.write(`${keptHint(dir)}\n`);
}

async function down(flags: DirFlag, signal: AbortSignal): Promise<void> {
  const dir = dirOf(flags);
  const found = await downCluster(commandEnv(), dir, signal);
  process.stderr.write(found ? `the cluster in ${dir} is gone, with its disks\n` : `no cluster in ${dir}\n`);
}

async function status(flags: StatusFlags, signal: AbortSignal): Promise<void> {
  const env = commandEnv();
  const dir = dirOf(flags);
  const cluster = await openCluster(env, dir);
  try {
    const processes = await processesOf(env, cluster.layout);
    const health = await processHealth(env.host, cluster.layout, cluster.config, processes);
    if (!health.isSupervised && !processes.some(({ alive }) => alive)) {
      throw new Error(
        `the cluster in ${dir} is stopped: start it with "longshore cluster start${dirWords(dir)}"`,
      );
    }
    const { layout, config } = cluster;
    const journals =
      flags.journal === undefined ? config.plugins.map(layout.journalFile) : [absolute(flags.journal)];
    const crossings = await readCrossingStatuses(env, journals);
    const state = await statusOfCluster(cluster, signal).catch((error: unknown) => {
      // Why nothing answers.
      if (health.waiting.length > 0 && flags.json !== true) {
        process.stdout.write(processTable(processes, health));
      }
      throw error;
    });
    if (flags.json === true) {
      const { waiting, fullDisk } = health;
      const crossing = currentCrossing(crossings);
      const facts = { processes, waiting, fullDisk, ...state, crossing, crossings };
      process.stdout.write(`${JSON.stringify(facts)}\n`);
      return;
    }
    process.stdout.write(
      `${processTable(processes, health)}\n${table([
        ["NODE", "READY", "ZONE", "MIGRATED PLUGINS", "ATTACHED"],
        ...state.nodes.map((n) => [n.name, n.ready, n.zone, n.migratedPlugins || "-", String(n.attached)]),
      ])}\n${table([
        ["VOLUME", "CLAIM", "PHASE", "HANDLE"],
        ...state.volumes.map((v) => [v.name, v.claim, v.phase, v.handle]),
      ])}${crossings.map((crossing) => `\n${table(crossingRows(crossing, state.nodes.length))}`).join("")}`,
    );
  } finally {
    cluster.kube.close();
  }
}

/** The processes, those that are to be started again, and why that may take a while. */
function processTable(processes: readonly ProcessStatus[], health: ProcessHealth): string {
  const waiting = health.isSupervised ? "restarting" : "down";
  const present = new Set(processes.map(({ name }) => name));
  const rows = table([
    ["PROCESS", "PID", "STATE", "RESTARTS"],
    ...processes.map((p) => [p.name, String(p.pid), p.alive ? "running" : waiting, String(p.restarts)]),
    ...health.waiting.filter((name) => !present.has(name)).map((name) => [name, "-", waiting, "-"]),
  ]);
  return health.fullDisk === undefined ? rows : `${rows}\n${health.fullDisk}\n`;
}

async function logs(name: string | undefined, flags: LogFlags, signal: AbortSignal): Promise<void> {
  const layout = clusterLayout(dirOf(flags));
  const { logDir } = layout;
  await readClusterConfig(commandEnv().host, layout);
  const write = (text: string) => void process.stdout.write(text);
  if (name === undefined)
    return write(
      loggedProcesses(logDir)
        .map((known) => `${known}\n`)
        .join(""),
    );
  const tail = flags.tail === undefined ? {} : { tail: wholeNumber("--tail", flags.tail, 0, 1e9) };
  await showLog(logDir, name, { ...tail, follow: flags.follow === true }, write, signal);
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
