/** A cluster that the command brings up, detached: it can be killed with all of its processes, and started by the command. */
import { rmSync } from "node:fs";
import { type Pod, resources, type Stored } from "@longshore/kube";
import { type OpenCluster, openCluster, processEnv, processHost, readPodLogs } from "@longshore/local";
import { silentLogger, systemClock } from "@longshore/runtime";
import { expect } from "vitest";
import { machineStateBelow, nothing } from "./machine-state.ts";
import { readPid } from "./power-cut.ts";
import { longshore } from "./run-command.ts";
import { shortDirectory } from "./test-cluster.ts";

const never = new AbortController().signal;
const host = processHost("kernel");

/** A cluster, of one node unless other flags are given, with a client of it. */
export class DetachedCluster {
  readonly dir: string;
  readonly #upFlags: readonly string[];
  #open: OpenCluster | undefined;

  /** @param upFlags those of `cluster up` @param dir default a new directory */
  constructor(upFlags: readonly string[] = ["--nodes", "1"], dir = shortDirectory()) {
    this.#upFlags = upFlags;
    this.dir = dir;
  }

  /** Brings it up, or starts it after its end. */
  async start(): Promise<void> {
    const verb = this.#open === undefined ? ["up", ...this.#upFlags] : ["start"];
    this.#open?.kube.close();
    await this.succeed("cluster", ...verb, "--detach");
    this.#open = await openCluster({ ...processEnv("test", silentLogger), host }, this.dir);
  }

  /** Takes it down and expects the machine as it was. */
  async down(): Promise<void> {
    this.#open?.kube.close();
    await this.succeed("cluster", "down");
    expect(machineStateBelow(this.dir)).toEqual(nothing);
    rmSync(this.dir, { recursive: true, force: true });
  }

  get kube(): OpenCluster["kube"] {
    return this.#running.kube;
  }

  get platform(): OpenCluster["platform"] {
    return this.#running.platform;
  }

  get kubeconfig(): string {
    return this.#running.layout.kubeconfig;
  }

  get cloud(): OpenCluster["cloud"] {
    return this.#running.cloud;
  }

  /** Runs the command on this cluster, which must succeed; returns its stdout. */
  async succeed(...args: readonly string[]): Promise<string> {
    const { code, out, err } = await longshore(...args, "--dir", this.dir);
    expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
    return out;
  }

  /** Waits until `holds`, on a value, for at most so long. */
  async until(what: string, holds: () => Promise<boolean> | boolean, withinMs = 60_000): Promise<void> {
    const untilMs = performance.now() + withinMs;
    for (let error: unknown; ; ) {
      try {
        if (await holds()) return;
        error = undefined;
      } catch (failure) {
        error = failure;
      }
      if (performance.now() > untilMs) {
        throw new Error(`${what}: not within ${withinMs} ms`, error === undefined ? {} : { cause: error });
      }
      await systemClock.sleep(50, never);
    }
  }

  pod(name: string): Promise<Stored<Pod> | undefined> {
    return this.kube.get(resources.pods, { namespace: "default", name }, { signal: never });
  }

  /** What the pod's containers have said, over all of their runs. */
  async log(podName: string): Promise<string> {
    const logs = await readPodLogs(host, this.#running.layout.podLogDir, "default", podName);
    return logs.join("");
  }

  /** The process id of a process of the cluster. */
  pidOf(processName: string): number {
    return readPid(this.#running.layout.pidFile(processName));
  }

  get #running(): OpenCluster {
    if (this.#open === undefined) throw new Error("the cluster was not started");
    return this.#open;
  }
}
