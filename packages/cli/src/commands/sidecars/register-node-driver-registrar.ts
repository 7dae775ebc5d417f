/** `longshore run node-driver-registrar`: its flags, and how it is put together. */
import type { Command } from "commander";
import { UsageError } from "../../exit.ts";
import { addFlagCommand, type ReadFlags } from "./add-flag-command.ts";
import { driverFlags, processFlags } from "./common-flags.ts";
import { choice, duration, obsolete, text, whole } from "./flag-table.ts";
import { connectDriver, runSidecarProcess, type Shell, type Started } from "./sidecar-process.ts";

/** All of its flags. */
export const nodeDriverRegistrarFlags = {
  ...driverFlags,
  "kubelet-registration-path": text(
    "path",
    "",
    "path of the driver's socket as the kubelet sees it; required",
  ),
  "plugin-registration-path": text("dir", "/registration", "directory that the kubelet watches for plugins"),
  timeout: duration("1s", "deadline of each call to the driver"),
  "http-endpoint": text("address", "", "serve /healthz there, e.g. :8080; excludes --health-port"),
  "health-port": whole(0, "(deprecated) serve /healthz on this port; use --http-endpoint"),
  mode: choice(
    ["registration", "kubelet-registration-probe"] as const,
    "registration",
    "kubelet-registration-probe: say by the exit code whether the kubelet has registered the driver",
  ),
  "enable-pprof": obsolete("switch", "profiling is not supported"),
  "connection-timeout": obsolete("text", "the driver is waited for"),
  "driver-requires-attachment": obsolete("text", "the CSIDriver object says it"),
  "pod-info-mount-version": obsolete("text", "the CSIDriver object says it"),
  ...processFlags,
} as const;

/** Adds the verb. */
export function registerNodeDriverRegistrar(run: Command): void {
  addFlagCommand(run, "node-driver-registrar", nodeDriverRegistrarFlags, async (flags) => {
    if (flags.values.mode === "kubelet-registration-probe") return probeRegistration(flags);
    const port = flags.values["health-port"];
    if (port > 0 && flags.values["http-endpoint"] !== "") {
      throw new UsageError("only one of --health-port and --http-endpoint can be set: use --http-endpoint");
    }
    const values = { ...flags.values, ...(port > 0 ? { "http-endpoint": `:${port}` } : {}) };
    await runSidecarProcess(
      "node-driver-registrar",
      nodeDriverRegistrarFlags,
      { ...flags, values },
      (shell) => startRegistrar(shell, flags),
    );
  }).description("register a driver with the kubelet of its node");
}

async function startRegistrar(
  shell: Shell,
  flags: ReadFlags<typeof nodeDriverRegistrarFlags>,
): Promise<Started> {
  const { values } = flags;
  const path = values["kubelet-registration-path"];
  if (path === "") throw new UsageError("--kubelet-registration-path is required");
  const { startNodeDriverRegistrar, unsupportedPlatform } = await import("@longshore/sidecars");
  const unsupported = unsupportedPlatform(process.platform);
  if (unsupported !== undefined) throw new UsageError(unsupported);
  const { grpcConnector, grpcListener } = await import("@longshore/csi");
  const { kernelHost } = await import("@longshore/runtime");
  const registrar = startNodeDriverRegistrar(
    {
      ...shell.env,
      csi: await connectDriver(shell, flags),
      listener: grpcListener(shell.env),
      connector: grpcConnector(shell.env),
      host: kernelHost(),
    },
    {
      kubeletRegistrationPath: path,
      registrationDir: values["plugin-registration-path"],
      timeoutMs: values.timeout,
    },
  );
  shell.routes.set("/healthz", (signal) => registrar.check(signal));
  return registrar;
}

/** Ends the process with 0 when the kubelet has registered the driver. */
async function probeRegistration({ values }: ReadFlags<typeof nodeDriverRegistrarFlags>): Promise<void> {
  const path = values["kubelet-registration-path"];
  if (path === "") throw new UsageError("--kubelet-registration-path is required");
  const { registrationProbe } = await import("@longshore/sidecars");
  const { kernelHost } = await import("@longshore/runtime");
  const why = await registrationProbe(kernelHost(), path);
  if (why !== undefined) throw new Error(why);
}
