/** What every sidecar does first: wait for the driver, learn its name and what it can do. */
import type { Clock } from "@longshore/runtime";
import type { CsiCallOptions, CsiConnection } from "./csi-connection.ts";
import { CsiCallError } from "./errors.ts";
import {
  ControllerServiceCapability_RPC_TypeSchema,
  PluginCapability_Service_TypeSchema,
  PluginCapability_VolumeExpansion_TypeSchema,
} from "./gen/csi_pb.ts";

/** What a driver can do, by the protocol's names (`CREATE_DELETE_VOLUME`, …). Unknown values are left out. */
export interface DriverCapabilities {
  /** Answer of `GetPluginCapabilities`: services, and volume expansion as `VOLUME_EXPANSION_ONLINE` or `…_OFFLINE`. */
  readonly plugin: ReadonlySet<string>;
  /** Answer of `ControllerGetCapabilities`; empty without a controller service. */
  readonly controller: ReadonlySet<string>;
}

/**
 * Calls Probe once a second until the driver is ready (`ready` absent means ready, docs/behaviour/csi-spec-notes.md 5).
 * A driver that cannot be reached yet is waited for; any other failure is thrown.
 */
export async function waitUntilReady(
  env: { readonly clock: Clock },
  connection: CsiConnection,
  options: CsiCallOptions,
): Promise<void> {
  for (;;) {
    try {
      const { ready } = await connection.identity.probe({}, options);
      if (ready !== false) return;
    } catch (error) {
      // A driver that is only slow is waited for as well, as in csi-lib-utils.
      const mayPass =
        error instanceof CsiCallError && (!error.answered || error.code === "DEADLINE_EXCEEDED");
      if (!mayPass || options.signal.aborted) throw error;
    }
    await env.clock.sleep(1000, options.signal);
  }
}

/** The driver's name. @throws when it is empty */
export async function driverNameOf(connection: CsiConnection, options: CsiCallOptions): Promise<string> {
  const { name } = await connection.identity.getPluginInfo({}, options);
  if (name === "") throw new Error("driver bug: GetPluginInfo returned an empty name");
  return name;
}

/** What the driver can do. */
export async function capabilitiesOf(
  connection: CsiConnection,
  options: CsiCallOptions,
): Promise<DriverCapabilities> {
  const plugin = new Set<string>();
  const answer = await connection.identity.getPluginCapabilities({}, options);
  for (const { type } of answer.capabilities) {
    if (type.case === "service") {
      const name = PluginCapability_Service_TypeSchema.value[type.value.type]?.name;
      if (name !== undefined) plugin.add(name);
    } else if (type.case === "volumeExpansion") {
      const name = PluginCapability_VolumeExpansion_TypeSchema.value[type.value.type]?.name;
      if (name !== undefined) plugin.add(`VOLUME_EXPANSION_${name}`);
    }
  }
  const controller = new Set<string>();
  if (plugin.has("CONTROLLER_SERVICE")) {
    const { capabilities } = await connection.controller.controllerGetCapabilities({}, options);
    for (const { type } of capabilities) {
      if (type.case !== "rpc") continue;
      const name = ControllerServiceCapability_RPC_TypeSchema.value[type.value.type]?.name;
      if (name !== undefined) controller.add(name);
    }
  }
  return { plugin, controller };
}
