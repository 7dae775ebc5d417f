/**
 * What registering a CSI driver means: its endpoint becomes known to the mounters, its node ID and
 * topology to the cluster. Source: docs/behaviour/csi-plugin.md 14.
 */
import type { CsiConnector } from "@longshore/csi";
import type { RuntimeEnv } from "@longshore/runtime";
import type { RegisteredCsiDrivers } from "../../plugins/csi/registered-csi-drivers.ts";
import { readDriverInfo } from "../csi-node/driver-info.ts";
import type { NodeInfoManager } from "../csi-node/node-info.ts";
import { DriverVersionError, highestSupportedVersion, isLowerVersion } from "./csi-versions.ts";

/** A plugin as its registrar presents it. */
export interface PluginCandidate {
  readonly name: string;
  /** The driver's socket. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** What a kind of plugin does on registration. Every method may throw. */
export interface RegistrationHandler {
  /** Refuses a candidate by throwing. */
  validatePlugin(candidate: PluginCandidate): void;
  /** Registers; when it throws, nothing of it is left, and a plugin that was registered by that name before stays so. */
  registerPlugin(candidate: PluginCandidate, signal: AbortSignal): Promise<void>;
  deRegisterPlugin(name: string, signal: AbortSignal): Promise<void>;
}

/** The handler for CSI drivers. */
export function csiRegistrationHandler(
  env: RuntimeEnv & { readonly connector: CsiConnector },
  drivers: RegisteredCsiDrivers,
  nodeInfo: NodeInfoManager,
): RegistrationHandler {
  const validate = ({ name, versions }: PluginCandidate): string => {
    const highest = highestSupportedVersion(name, versions);
    const registered = drivers.get(name);
    if (registered !== undefined && !isLowerVersion(registered.highestVersion, highest)) {
      throw new DriverVersionError(
        `CSI driver ${name} is already registered with version ${registered.highestVersion}, which ${highest} does not exceed; stop the other one`,
      );
    }
    return highest;
  };
  const deRegisterPlugin = async (name: string, signal: AbortSignal): Promise<void> => {
    drivers.delete(name);
    await nodeInfo.uninstallDriver(name, signal);
  };
  return {
    validatePlugin: (candidate) => {
      validate(candidate);
    },
    async registerPlugin(candidate, signal) {
      const { name, endpoint } = candidate;
      const highestVersion = validate(candidate);
      try {
        const info = await readDriverInfo(env, endpoint, signal);
        await nodeInfo.installDriver(name, info, signal);
        // Only a driver whose node is known to the cluster may be used.
        drivers.set(name, { endpoint, highestVersion });
      } catch (error) {
        // An older version serves, on another socket.
        if (drivers.get(name) !== undefined) throw error;
        await deRegisterPlugin(name, signal).catch((undoError) =>
          env.logger.warn("undoing a failed driver registration failed", { driver: name, error: undoError }),
        );
        throw error;
      }
    },
    deRegisterPlugin,
  };
}
