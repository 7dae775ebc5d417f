/** The part of a container's log that a client asks for. Source: core/v1 PodLogOptions; kubernetes pkg/kubelet/kubelet_pods.go. */
import { logLength, readLogFile } from "../containers/read-log-file.ts";
import { podLogFile } from "../containers/read-pod-logs.ts";
import { isTrue, NodeRefusal, type NodeServices, type NodeTarget, numberOf } from "./node-request.ts";

/** The asked part of the log of a container's last run, or of the run before. @throws NodeRefusal */
export async function logOf(
  { clock, runtime, logDir }: NodeServices,
  { pod, container, params }: NodeTarget,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  if (isTrue(params, "timestamps") || params.has("sinceSeconds") || params.has("sinceTime")) {
    throw new NodeRefusal(
      400,
      "local nodes record no times of lines: leave out `timestamps`, `sinceSeconds` and `sinceTime`",
    );
  }
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
  const limitBytes = numberOf(params, "limitBytes");
  const query = {
    follow: isTrue(params, "follow") && !isPrevious,
    // Now, not at the first look: what comes after this call is not missed.
    ...(tailLines === 0 ? { startByte: await logLength(path) } : {}),
    ...(tailLines === undefined || tailLines === 0 ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
  };
  return readLogFile(clock, path, query, hasEnded, signal);
}
