/** `longshore run cluster-driver-registrar`: its flags, and how it is put together. */
import type { Command } from "commander";
import { UsageError } from "../../exit.ts";
import { addFlagCommand, type ReadFlags } from "./add-flag-command.ts";
import { driverFlags, kubeFlags, processFlags } from "./common-flags.ts";
import { duration, obsolete, text } from "./flag-table.ts";
import {
  connectDriver,
  connectKube,
  runSidecarProcess,
  type Shell,
  type Started,
} from "./sidecar-process.ts";

/** All of its flags. */
export const clusterDriverRegistrarFlags = {
  ...driverFlags,
  ...kubeFlags,
  "pod-info-mount-version": text(
    "version",
    "",
    "v1: the driver receives the pod's name, namespace and UID when it publishes a volume",
  ),
  timeout: duration("10s", "deadline of each call to the driver"),
  "connection-timeout": obsolete("text", "the driver is waited for"),
  "driver-requires-attachment": obsolete("text", "the driver says it"),
  ...processFlags,
} as const;

/** Adds the verb. */
export function registerClusterDriverRegistrar(run: Command): void {
  addFlagCommand(run, "cluster-driver-registrar", clusterDriverRegistrarFlags, async (flags) => {
    await runSidecarProcess("cluster-driver-registrar", clusterDriverRegistrarFlags, flags, (shell) =>
      startRegistrar(shell, flags),
    );
  }).description("keep a CSIDriver object for a driver whose manifests bring none");
}

async function startRegistrar(
  shell: Shell,
  flags: ReadFlags<typeof clusterDriverRegistrarFlags>,
): Promise<Started> {
  const { values } = flags;
  const { ClusterDriverRegistrarOptionError, startClusterDriverRegistrar } = await import(
    "@longshore/sidecars"
  );
  const { kube } = await connectKube(shell, values);
  const csi = await connectDriver(shell, flags);
  try {
    const registrar = startClusterDriverRegistrar(
      { ...shell.env, kube, csi },
      { podInfoMountVersion: values["pod-info-mount-version"], timeoutMs: values.timeout },
    );
    // The object is deleted when this process ends: that the driver was restarted is no reason to.
    return { failed: new Promise(() => {}), stop: () => registrar.stop() };
  } catch (error) {
    if (!(error instanceof ClusterDriverRegistrarOptionError)) throw error;
    throw new UsageError(`--pod-info-mount-version: ${error.message}`, { cause: error.cause });
  }
}
