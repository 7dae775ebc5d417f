/**
 * What is known of the driver under test before the first check: its name, what it declares, its node. A call
 * that fails here counts as nothing declared: the checks of that call say what is wrong with it.
 */
import {
  ControllerServiceCapability_RPC_TypeSchema,
  CsiCallError,
  GroupControllerServiceCapability_RPC_TypeSchema,
  type NodeGetInfoResponse,
  NodeServiceCapability_RPC_TypeSchema,
  PluginCapability_Service_TypeSchema,
  PluginCapability_VolumeExpansion_TypeSchema,
} from "@longshore/csi";
import type { DescEnum } from "@longshore/csi/transport";
import type { ConformanceClients } from "./conformance-clients.ts";
import type { SettledOptions } from "./conformance-options.ts";

/** The driver under test. */
export interface DriverTarget {
  readonly name: string;
  readonly vendorVersion: string;
  /** `CONTROLLER_SERVICE`, …, and `VOLUME_EXPANSION_ONLINE`, `VOLUME_EXPANSION_OFFLINE`. */
  readonly plugin: ReadonlySet<string>;
  readonly controller: ReadonlySet<string>;
  readonly groupController: ReadonlySet<string>;
  readonly node: ReadonlySet<string>;
  /** Whether a controller service answers, declared or not. */
  readonly servesController: boolean;
  /** Whether a node service answers. */
  readonly hasNode: boolean;
  /** Answer of NodeGetInfo, where it was given. */
  readonly nodeInfo: NodeGetInfoResponse | undefined;
  readonly options: SettledOptions;
}

/** Nothing answers at the endpoint, or what answers is not a CSI driver. */
export class DriverUnreachableError extends Error {
  override readonly name = "DriverUnreachableError";
}

/**
 * Asks the driver what it is.
 * @throws DriverUnreachableError when there is no driver to be checked
 */
export async function observeTarget(
  clients: ConformanceClients,
  options: SettledOptions,
): Promise<DriverTarget> {
  const info = await clients.identity.getPluginInfo({}).catch((error: unknown) => {
    if (error instanceof CsiCallError && error.answered && error.code !== "UNIMPLEMENTED") return undefined;
    throw unreachable(error, options.endpoint);
  });
  const plugin = await declaredPlugin(clients);
  // Asked also where it is not declared: a check is about controllers that serve without declaring it.
  const controllerAnswer = await orNothing(clients.controller.controllerGetCapabilities({}), options);
  const groupAnswer = plugin.has("GROUP_CONTROLLER_SERVICE")
    ? await orNothing(clients.groupController.groupControllerGetCapabilities({}), options)
    : undefined;
  const nodeAnswer = await orNothing(clients.node.nodeGetCapabilities({}), options);
  return {
    name: info?.name ?? "",
    vendorVersion: info?.vendorVersion ?? "",
    plugin,
    controller: plugin.has("CONTROLLER_SERVICE")
      ? rpcNames(controllerAnswer, ControllerServiceCapability_RPC_TypeSchema)
      : new Set(),
    servesController: controllerAnswer !== undefined,
    groupController: rpcNames(groupAnswer, GroupControllerServiceCapability_RPC_TypeSchema),
    node: rpcNames(nodeAnswer, NodeServiceCapability_RPC_TypeSchema),
    hasNode: nodeAnswer !== undefined,
    nodeInfo: nodeAnswer && (await orNothing(clients.node.nodeGetInfo({}), options)),
    options,
  };
}

function unreachable(error: unknown, endpoint: string): DriverUnreachableError {
  if (error instanceof CsiCallError && error.code === "UNIMPLEMENTED") {
    return new DriverUnreachableError(
      `what answers at ${endpoint} is not a CSI driver: GetPluginInfo is UNIMPLEMENTED`,
    );
  }
  const timedOut = error instanceof CsiCallError && error.code === "DEADLINE_EXCEEDED";
  return new DriverUnreachableError(
    timedOut
      ? `the driver at ${endpoint} does not answer GetPluginInfo`
      : `no driver can be reached at ${endpoint}`,
    { cause: error },
  );
}

/** The answer, or undefined when the driver refuses. @throws DriverUnreachableError when it does not answer */
async function orNothing<T>(call: Promise<T>, options: SettledOptions): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof CsiCallError && error.answered) return undefined;
    const { endpoint, controllerEndpoint = endpoint } = options;
    throw new DriverUnreachableError(
      `the driver does not answer ${error instanceof CsiCallError ? error.rpc : "a call"}: look at ${
        controllerEndpoint === endpoint ? endpoint : `${endpoint} and ${controllerEndpoint}`
      }`,
      { cause: error },
    );
  }
}

async function declaredPlugin(clients: ConformanceClients): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  const answer = await clients.identity.getPluginCapabilities({}).catch(() => undefined);
  for (const { type } of answer?.capabilities ?? []) {
    if (type.case === "service") {
      const name = PluginCapability_Service_TypeSchema.value[type.value.type]?.name;
      if (name !== undefined) names.add(name);
    } else if (type.case === "volumeExpansion") {
      const name = PluginCapability_VolumeExpansion_TypeSchema.value[type.value.type]?.name;
      if (name !== undefined) names.add(`VOLUME_EXPANSION_${name}`);
    }
  }
  return names;
}

interface RpcCapabilities {
  readonly capabilities: readonly {
    readonly type:
      | { readonly case: "rpc"; readonly value: { readonly type: number } }
      | { readonly case: undefined; readonly value?: undefined };
  }[];
}

/** Names of declared RPCs; values that this specification does not know are left out. */
function rpcNames(answer: RpcCapabilities | undefined, schema: DescEnum): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { type } of answer?.capabilities ?? []) {
    const name = type.case === "rpc" ? schema.value[type.value.type]?.name : undefined;
    if (name !== undefined && name !== "UNKNOWN") names.add(name);
  }
  return names;
}
