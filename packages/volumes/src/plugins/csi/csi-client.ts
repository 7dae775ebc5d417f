/**
 * Calls to a registered CSI driver's node service, and what their failures say about the volume.
 * Source: docs/behaviour/csi-plugin.md 12.
 */
import {
  CsiCallError,
  type CsiCallOptions,
  type CsiClient,
  type Node as CsiNodeService,
  type GrpcCode,
  measuredConnection,
  NodeServiceCapability_RPC_Type,
} from "@longshore/csi";
import { DeadlineError, withDeadline } from "@longshore/runtime";
import { csiAccessMode } from "@longshore/storage";
import { UncertainProgressError } from "../../framework/node-error-kind.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";
import { type CsiNodeContext, csiTimeoutMs } from "./csi-node-context.ts";

/** The driver has not registered on this node (yet). */
export class DriverNotRegisteredError extends Error {
  override readonly name = "DriverNotRegisteredError";
  constructor(driverName: string, nodeName: string) {
    super(
      `driver name ${driverName} not found in the list of registered CSI drivers of node ${nodeName}: ` +
        "start the driver and its node-driver-registrar there",
    );
  }
}

/** The driver has not answered within the time of one plugin method. */
class SilentDriverError extends DeadlineError {
  constructor(driverName: string, nodeName: string) {
    super(csiTimeoutMs);
    this.message = `driver ${driverName} on node ${nodeName} has not answered for ${csiTimeoutMs / 1000} s: look into its log, and restart it if it hangs`;
  }
}

/** A driver's node service as one plugin method uses it. */
export interface NodeCalls {
  readonly node: CsiClient<typeof CsiNodeService>;
  readonly options: CsiCallOptions;
}

/** @throws DriverNotRegisteredError */
export function requireDriver(context: CsiNodeContext, driverName: string): string {
  const driver = context.drivers.get(driverName);
  if (driver === undefined) throw new DriverNotRegisteredError(driverName, context.kubelet.nodeName);
  return driver.endpoint;
}

/**
 * Connects to the driver for the time of `use`, under the deadline of one plugin method.
 * @param of the driver, and the volume's spec where it is known: metrics distinguish migrated volumes
 */
export async function withDriver<T>(
  context: CsiNodeContext,
  of: { readonly driver: string; readonly spec?: VolumeSpec },
  signal: AbortSignal,
  use: (calls: NodeCalls) => Promise<T>,
): Promise<T> {
  // For each method: a driver that has registered again may have another endpoint.
  const connection = context.connector.connect(requireDriver(context, of.driver));
  try {
    const labels = { driver_name: of.driver, migrated: String(of.spec?.isMigrated === true) };
    const { node } = measuredConnection(context.volumeHost, connection, labels);
    return await withDeadline(
      context.volumeHost.clock,
      csiTimeoutMs,
      signal,
      (methodSignal) => use({ node, options: { signal: methodSignal, timeoutMs: csiTimeoutMs } }),
      () => new SilentDriverError(of.driver, context.kubelet.nodeName),
    );
  } finally {
    connection.close();
  }
}

/** What a driver's node service can do. */
export type NodeCapabilities = ReadonlySet<NodeServiceCapability_RPC_Type>;

/** Asks the driver what its node service can do. */
export async function nodeCapabilities({ node, options }: NodeCalls): Promise<NodeCapabilities> {
  const { capabilities } = await node.nodeGetCapabilities({}, options);
  return new Set(capabilities.flatMap(({ type }) => (type.case === "rpc" ? [type.value.type] : [])));
}

/** Whether these capabilities are those of a driver that stages volumes. */
export function stages(capabilities: NodeCapabilities): boolean {
  return capabilities.has(NodeServiceCapability_RPC_Type.STAGE_UNSTAGE_VOLUME);
}

/** Whether the driver stages volumes. */
export async function stagesVolumes(calls: NodeCalls): Promise<boolean> {
  return stages(await nodeCapabilities(calls));
}

/** After these the driver may still be at work: NodeStageVolume's and NodePublishVolume's rule. */
const mayBeInProgress: ReadonlySet<GrpcCode> = new Set<GrpcCode>([
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "UNAVAILABLE",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
]);

/** True once a failed NodeStageVolume or NodePublishVolume has surely ended without effect. */
export function nodeCallIsFinal(error: unknown): error is CsiCallError {
  return error instanceof CsiCallError && error.answered && !mayBeInProgress.has(error.code);
}

/** Runs a stage or publish call; a failure that is not final becomes an {@link UncertainProgressError}. */
export async function classified(what: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (nodeCallIsFinal(error)) throw error;
    throw new UncertainProgressError(what, { cause: error });
  }
}

/** How a volume is used, and by what driver. */
export interface VolumeAccess {
  /** Those of the PersistentVolume: the first one counts. */
  readonly accessModes: readonly string[] | undefined;
  readonly capabilities: NodeCapabilities;
}

/**
 * The capability of a mounted volume, for NodeStageVolume, NodePublishVolume and NodeExpandVolume.
 *
 * @param mount its `volumeMountGroup` is the group that the driver gives the files to, by its number; empty: none
 */
export function mountCapability(
  access: VolumeAccess,
  mount: {
    readonly fsType: string | undefined;
    readonly mountFlags: readonly string[];
    readonly volumeMountGroup?: string;
  },
) {
  const { fsType = "", mountFlags, volumeMountGroup = "" } = mount;
  const value = { fsType, mountFlags: [...mountFlags], volumeMountGroup };
  return { accessMode: accessModeOf(access), accessType: { case: "mount" as const, value } };
}

/** The capability of a volume that pods get as a device: it has neither file system nor mount flags. */
export function blockCapability(access: VolumeAccess) {
  return { accessMode: accessModeOf(access), accessType: { case: "block" as const, value: {} } };
}

/** Source: docs/behaviour/csi-plugin.md 12. */
function accessModeOf({ accessModes, capabilities }: VolumeAccess) {
  const singleNodeMultiWriter = capabilities.has(NodeServiceCapability_RPC_Type.SINGLE_NODE_MULTI_WRITER);
  return { mode: csiAccessMode(accessModes?.[0] ?? "ReadWriteOnce", { singleNodeMultiWriter }) };
}
