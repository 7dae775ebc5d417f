/** `longshore run liveness-probe`: its flags, and how it is put together. */
import type { Command } from "commander";
import { UsageError } from "../../exit.ts";
import { addFlagCommand, type ReadFlags } from "./add-flag-command.ts";
import { driverFlags, httpFlags, processFlags } from "./common-flags.ts";
import { duration, obsolete, text } from "./flag-table.ts";
import { type Routes, serveHttp } from "./serve-http.ts";
import { connectDriver, runSidecarProcess, type Shell, type Started } from "./sidecar-process.ts";

/** All of its flags. */
export const livenessProbeFlags = {
  ...driverFlags,
  "probe-timeout": duration("1s", "deadline of each Probe of the driver"),
  "health-port": text("port", "9808", "(deprecated) serve /healthz on this port; use --http-endpoint"),
  ...httpFlags,
  "connection-timeout": obsolete("text", "the driver is waited for"),
  ...processFlags,
} as const;

/** Adds the verb. */
export function registerLivenessProbe(run: Command): void {
  addFlagCommand(run, "liveness-probe", livenessProbeFlags, async (flags) => {
    await runSidecarProcess("liveness-probe", livenessProbeFlags, flags, (shell) => startProbe(shell, flags));
  }).description("answer GET /healthz by a Probe of the driver");
}

async function startProbe(shell: Shell, flags: ReadFlags<typeof livenessProbeFlags>): Promise<Started> {
  const { values } = flags;
  const endpoint = values["http-endpoint"];
  if (endpoint !== "" && flags.given.has("health-port")) {
    throw new UsageError("only one of --health-port and --http-endpoint can be set: use --http-endpoint");
  }
  const { startLivenessProbe } = await import("@longshore/sidecars");
  const csi = await connectDriver(shell, flags);
  const probe = startLivenessProbe({ ...shell.env, csi }, { probeTimeoutMs: values["probe-timeout"] });
  const health: Routes = endpoint === "" ? new Map() : shell.routes;
  health.set("/healthz", (signal) => probe.check(signal));
  if (endpoint === "") {
    const address = `0.0.0.0:${values["health-port"]}`;
    shell.own(await serveHttp(shell.env.logger, "--health-port", address, health));
  }
  return { failed: new Promise(() => {}), stop: () => probe.stop() };
}
