/** The disk cloud as its callers in other processes see it: HTTP over a unix socket. */
import { DeadlineError, type RuntimeEnv, withDeadline } from "@longshore/runtime";
import { type CloudCaller, CloudError } from "@longshore/volumes";
import { Agent, request } from "undici";
import type { DiskCloudAdmin } from "./disk-cloud.ts";
import type { ProviderCloud } from "./provider-cloud.ts";
import { decode, encode, type WireAnswer } from "./wire.ts";

/** A connection to the cloud's process. It connects as needed and outlives restarts of the cloud. */
export interface DiskCloudClient extends ProviderCloud, DiskCloudAdmin {
  /** Drops the connections; calls fail from then on. */
  close(): Promise<void>;
}

/** Options of {@link connectDiskCloud}. */
export interface DiskCloudClientOptions {
  /** Deadline of each call, in milliseconds; default 30 s. */
  readonly timeoutMs?: number;
}

/** Opens a connection; does no I/O. Calls fail with CloudError, `Unavailable` when the cloud does not answer. */
export function connectDiskCloud(
  env: Pick<RuntimeEnv, "clock">,
  socketPath: string,
  caller: CloudCaller,
  options: DiskCloudClientOptions = {},
): DiskCloudClient {
  const timeoutMs = options.timeoutMs ?? 30_000;
  // The deadline is ours, on our clock.
  const agent = new Agent({ connect: { socketPath }, headersTimeout: 0, bodyTimeout: 0 });

  async function exchange(operation: string, args: object, signal: AbortSignal): Promise<WireAnswer> {
    const response = await request(`http://disk-cloud/v1/${operation}`, {
      dispatcher: agent,
      method: "POST",
      headers: { "content-type": "application/json" },
      body: encode({ caller, args: { ...args } }),
      signal,
    });
    return decode(await response.body.text()) as WireAnswer;
  }

  async function call<T>(operation: string, args: object, signal: AbortSignal): Promise<T> {
    let answer: WireAnswer;
    try {
      answer = await withDeadline(env.clock, timeoutMs, signal, (s) => exchange(operation, args, s));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw unavailable(operation, error);
    }
    if ("error" in answer) throw new CloudError(answer.error.code, answer.error.message);
    return (answer.result ?? undefined) as T;
  }

  function unavailable(operation: string, cause: unknown): CloudError {
    const what =
      cause instanceof DeadlineError
        ? `the disk cloud did not answer ${operation} within ${timeoutMs} ms`
        : `the disk cloud does not answer on ${socketPath}`;
    return new CloudError("Unavailable", `${what}: see that it is running ("longshore cluster status")`, {
      cause,
    });
  }

  return {
    createDisk: (r, signal) => call("createDisk", r, signal),
    deleteDisk: (diskId, signal) => call("deleteDisk", { diskId }, signal),
    attachDisk: (diskId, instanceId, signal, how) =>
      call("attachDisk", { diskId, instanceId, ...how }, signal),
    detachDisk: (diskId, instanceId, signal) => call("detachDisk", { diskId, instanceId }, signal),
    resizeDisk: async (diskId, sizeBytes, signal) => {
      const grown = await call<{ readonly sizeBytes: bigint }>("resizeDisk", { diskId, sizeBytes }, signal);
      return grown.sizeBytes;
    },
    describeDisk: (diskId, signal) => call("describeDisk", { diskId }, signal),
    listDisks: (signal) => call("listDisks", {}, signal),
    describeInstance: (nodeName, signal) => call("describeInstance", { nodeName }, signal),
    listInstances: (signal) => call("listInstances", {}, signal),
    modifyDisk: (diskId, change, signal) => call("modifyDisk", { diskId, change }, signal),
    diskConditions: (diskIds, signal) => call("diskConditions", { diskIds }, signal),
    listZones: (signal) => call("listZones", {}, signal),
    listStoragePolicies: (signal) => call("listStoragePolicies", {}, signal),
    zoneCapacity: (zone, signal) => call("zoneCapacity", { zone }, signal),
    createSnapshot: (r, signal) => call("createSnapshot", r, signal),
    deleteSnapshot: (snapshotId, signal) => call("deleteSnapshot", { snapshotId }, signal),
    listSnapshots: (signal) => call("listSnapshots", {}, signal),
    snapshotBlocks: (r, signal) => call("snapshotBlocks", r, signal),
    createSnapshotGroup: (r, signal) => call("createSnapshotGroup", r, signal),
    deleteSnapshotGroup: (groupId, signal) => call("deleteSnapshotGroup", { groupId }, signal),
    describeSnapshotGroup: (groupId, signal) => call("describeSnapshotGroup", { groupId }, signal),
    registerInstance: (instance, signal) => call("registerInstance", { instance }, signal),
    deregisterInstance: (instanceId, signal) => call("deregisterInstance", { instanceId }, signal),
    calls: (sinceSeq, signal) => call("calls", { sinceSeq }, signal),
    counters: (signal) => call("counters", {}, signal),
    shareCredentials: (diskId, signal) => call("shareCredentials", { diskId }, signal),
    setKnobs: (op, knobs, signal, provider) => call("setKnobs", { op, knobs, provider }, signal),
    setCondition: (diskId, message, signal, provider) =>
      call("setCondition", { diskId, message, provider }, signal),
    close: () => agent.destroy(),
  };
}
