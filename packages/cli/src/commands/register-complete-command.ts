/**
 * `longshore complete WHAT`: what the completion scripts ask for while a line is typed. It is not in the help. A cluster that cannot be
 * asked soon is silence, never an error: the shell is in the middle of a line.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { KubeObject, Resource } from "@longshore/kube";
import { Argument, type Command } from "commander";

/** The kinds of names that a running cluster knows, and the codes of findings. */
export const clusterNames = ["nodes", "namespaces", "persistentVolumes", "codes"] as const;
/** One of them. */
export type ClusterNames = (typeof clusterNames)[number];

/** How long the cluster may take, in milliseconds: longer is a shell that hangs. */
const answerWithinMs = 1500;
/** Names that are offered at most. */
const namesMax = 500;

/** Adds the verb. */
export function registerCompleteCommand(program: Command): void {
  program
    .command("complete", { hidden: true })
    .description("names of the cluster, for the completion of a line")
    .addArgument(new Argument("<what>").choices(clusterNames))
    .argument("[word...]", "the line so far, after --")
    .action(async (what: ClusterNames, line: readonly string[]) => {
      const names = await namesOf(what, line).catch(() => []);
      process.stdout.write(names.map((name) => `${name}\n`).join(""));
    });
}

async function namesOf(what: ClusterNames, line: readonly string[]): Promise<readonly string[]> {
  if (what === "codes") {
    const { findingCodes } = await import("@longshore/migration");
    return findingCodes.map(({ code }) => code);
  }
  const path = kubeconfigPath(line);
  if (path === undefined) return [];
  const { createHttpClient, loadKubeconfig, resources } = await import("@longshore/kube");
  const { kernelHost, noMeter, silentLogger, systemClock, systemRandom, withDeadline } = await import(
    "@longshore/runtime"
  );
  const runtime = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
  const context = flagValue(line, "--context");
  return withDeadline(systemClock, answerWithinMs, new AbortController().signal, async (signal) => {
    const kube = createHttpClient(
      runtime,
      await loadKubeconfig(kernelHost(), {
        path,
        environment: process.env as Record<string, string>,
        ...(context === undefined ? {} : { context }),
      }),
    );
    try {
      const resource: Resource<KubeObject> = resources[what];
      const { items } = await kube.list(resource, { signal, limit: namesMax });
      return items.map(({ metadata }) => metadata.name).filter(isPlain);
    } finally {
      // Not waited for: a connection that hangs must not hold the shell.
      kube.close().catch(() => {});
    }
  });
}

/** The kubeconfig of the cluster that the line is about: `--kubeconfig`, that of `--dir`, KUBECONFIG, that of the default local cluster. */
export function kubeconfigPath(line: readonly string[]): string | undefined {
  const ofDir = (dir: string) => join(resolve(dir), "kubeconfig");
  const kubeconfig = flagValue(line, "--kubeconfig");
  if (kubeconfig !== undefined) return resolve(kubeconfig);
  const dir = flagValue(line, "--dir");
  if (dir !== undefined) return ofDir(dir);
  const state = process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state");
  const own = ofDir(join(state, "longshore", "cluster"));
  const { KUBECONFIG: given = "" } = process.env;
  // Verbs that are about the local cluster, whatever kubectl is about.
  if (isLocal(line) || given === "") return existsSync(own) ? own : undefined;
  return resolve(given);
}

/** A crossing is one of the local cluster unless its flags say otherwise. */
function isLocal(line: readonly string[]): boolean {
  const [verb = ""] = line;
  if (verb === "cluster") return true;
  const isElsewhere = ["--platform", "--context"].some((flag) => flagValue(line, flag) !== undefined);
  return ["migrate", "rollback"].includes(verb) && !isElsewhere;
}

function flagValue(line: readonly string[], flag: string): string | undefined {
  const at = line.lastIndexOf(flag);
  if (at >= 0) return line[at + 1];
  return line.findLast((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1);
}

/** A shell expands what it is offered: nothing but the characters of names may get there. */
const isPlain = (name: string): boolean => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name);
