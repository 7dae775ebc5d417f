/** The part of a container's log that a client asks for. Source: core/v1 PodLogOptions; kubernetes pkg/kubelet/kubelet_pods.go. */
import type { Clock } from "@longshore/runtime";
import { logLength, readLogFile } from "../containers/read-log-file.ts";
import { podLogFile } from "../containers/read-pod-logs.ts";
import { type LogSelection, selectLog } from "../containers/select-log.ts";
import { isTrue, NodeRefusal, type NodeServices, type NodeTarget, numberOf } from "./node-request.ts";

/** The asked part of the log of a container's last run, or of the run before. @throws NodeRefusal */
export async function logOf(
  { clock, runtime, logDir }: NodeServices,
  { pod, container, params }: NodeTarget,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const selection = selectionOf(clock, params);
  const { uid } = pod.metadata;
  const state = (await runtime.state(uid, signal)).get(container);
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  const last = state?.attempt ?? statuses.find(({ name }) => name === container)?.restartCount ?? 0;
  const isPrevious = isTrue(params, "previous");
  if (isPrevious && last === 0) {
    throw new NodeRefusal(
      400,
      `previous terminated container "${container}" in pod "${pod.metadata.name}" not found`,
    );
  }
  if (
    state === undefined &&
    statuses.find(({ name }) => name === container)?.state?.terminated === undefined
  ) {
    const reason =
      statuses.find(({ name }) => name === container)?.state?.waiting?.reason ?? "ContainerCreating";
    throw new NodeRefusal(
      400,
      `container "${container}" in pod "${pod.metadata.name}" is waiting to start: ${reason}`,
    );
  }
  const attempt = isPrevious ? last - 1 : last;
  const named = { namespace: pod.metadata.namespace ?? "default", name: pod.metadata.name, uid };
  const path = podLogFile(logDir, named, container, attempt);
  const hasEnded = async () => {
    const now = (await runtime.state(uid, signal)).get(container);
    return now?.kind !== "running" || now.attempt !== attempt;
  };
  const tailLines = numberOf(params, "tailLines");
  const query = {
    follow: isTrue(params, "follow") && !isPrevious,
    // Now, not at the first look: what comes after this call is not missed.
    ...(tailLines === 0 ? { startByte: await logLength(path) } : {}),
    ...(tailLines === undefined || tailLines === 0 ? {} : { tailLines }),
  };
  return selectLog(readLogFile(clock, path, query, hasEnded, signal), selection);
}

/** @throws NodeRefusal */
function selectionOf(clock: Pick<Clock, "now">, params: URLSearchParams): LogSelection {
  const limitBytes = numberOf(params, "limitBytes");
  const sinceMs = sinceOf(clock, params);
  return {
    timestamps: isTrue(params, "timestamps"),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
  };
}

/** In milliseconds since 1970; undefined: from the beginning. @throws NodeRefusal */
function sinceOf(clock: Pick<Clock, "now">, params: URLSearchParams): number | undefined {
  const seconds = numberOf(params, "sinceSeconds");
  const time = params.get("sinceTime");
  if (seconds !== undefined && time !== null) {
    throw new NodeRefusal(400, "at most one of `sinceTime` or `sinceSeconds` may be specified");
  }
  if (seconds === 0) throw new NodeRefusal(400, "sinceSeconds: must be greater than 0");
  if (seconds !== undefined) return clock.now().getTime() - seconds * 1000;
  if (time === null) return undefined;
  if (!rfc3339.test(time) || Number.isNaN(Date.parse(time))) {
    throw new NodeRefusal(400, `sinceTime: "${time}" is not a time as 2026-01-02T15:04:05Z`);
  }
  return Date.parse(time);
}

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
