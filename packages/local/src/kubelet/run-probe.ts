/** Runs the probes and hooks of containers. Source: core/v1 Probe, LifecycleHandler; kubernetes pkg/probe, pkg/kubelet/prober. */
import type { Container, HTTPGetAction, LifecycleHandler, Pod, Probe, Stored } from "@longshore/kube";
import { type Clock, DeadlineError, withDeadline } from "@longshore/runtime";
import type { PodRuntime } from "../containers/pod-runtime.ts";
import type { ProbeNetwork, ProbeRequest } from "../containers/probe-network.ts";

/** What probes need. */
export interface ProbeParts {
  readonly clock: Clock;
  readonly runtime: Pick<PodRuntime, "exec">;
  readonly network: ProbeNetwork;
}

/** A container of a pod. */
export interface PodContainer {
  readonly pod: Stored<Pod>;
  readonly container: Container;
}

/** What a probe or a hook has found; undefined: it has succeeded. */
export type ProbeFailure = string | undefined;

/** The handler of a probe or a hook: at most one of these is set. */
type Handler = Pick<Probe, "exec" | "httpGet" | "tcpSocket" | "grpc"> & LifecycleHandler;

/** Address of every pod: containers share the machine's network. */
const podAddress = "127.0.0.1";
/** What is read of a probe's output, in bytes. */
const outputBytesMax = 10 * 1024;

/**
 * Runs the handler within `timeoutMs`, in milliseconds.
 *
 * @returns why it has failed; undefined when it has succeeded
 */
export async function runHandler(
  parts: ProbeParts,
  target: PodContainer,
  handler: Handler,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ProbeFailure> {
  try {
    return await withDeadline(parts.clock, timeoutMs, signal, (within) =>
      handle(parts, target, handler, within),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DeadlineError) return `no answer within ${timeoutMs / 1000} seconds`;
    return error instanceof Error ? error.message : String(error);
  }
}

async function handle(
  parts: ProbeParts,
  target: PodContainer,
  { exec, httpGet, tcpSocket, grpc, sleep }: Handler,
  signal: AbortSignal,
): Promise<ProbeFailure> {
  if (exec !== undefined) return runCommand(parts, target, exec.command ?? [], signal);
  if (httpGet !== undefined) {
    const status = await parts.network.httpGet(requestOf(target, httpGet), signal);
    return status >= 200 && status < 400 ? undefined : `HTTP probe failed with statuscode: ${status}`;
  }
  if (tcpSocket !== undefined) {
    await parts.network.connect(tcpSocket.host ?? podAddress, portOf(target, tcpSocket.port), signal);
    return undefined;
  }
  if (sleep !== undefined) {
    await parts.clock.sleep(1000 * sleep.seconds, signal);
    return undefined;
  }
  if (grpc === undefined) return "no handler is set";
  const service = grpc.service ?? "";
  const status = await parts.network.grpcHealth({ host: podAddress, port: grpc.port, service }, signal);
  return status === "SERVING" ? undefined : `service unhealthy (responded with "${status}")`;
}

async function runCommand(
  { runtime }: ProbeParts,
  { pod, container }: PodContainer,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<ProbeFailure> {
  const request = { podUID: pod.metadata.uid, containerName: container.name, argv, signal };
  const process = await runtime.exec(request);
  process.endInput();
  const [output, errors, exitCode] = await Promise.all([
    firstBytes(process.stdout),
    firstBytes(process.stderr),
    process.exitCode,
  ]);
  signal.throwIfAborted();
  return exitCode === 0 ? undefined : `command ended with ${exitCode}: ${output}${errors}`.trim();
}

/** Reads all, keeps the beginning: a program whose output is not read would wait. */
async function firstBytes(output: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of output) {
    if (bytes < outputBytesMax) chunks.push(chunk.subarray(0, outputBytesMax - bytes));
    bytes += chunk.length;
  }
  return Buffer.concat(chunks).toString("utf8");
}

function requestOf(
  target: PodContainer,
  { scheme, host, port, path, httpHeaders = [] }: HTTPGetAction,
): ProbeRequest {
  return {
    scheme: scheme === "HTTPS" ? "https" : "http",
    host: host === undefined || host === "" ? podAddress : host,
    port: portOf(target, port),
    path: path?.startsWith("/") === true ? path : `/${path ?? ""}`,
    headers: {
      "user-agent": "kube-probe/longshore",
      ...Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])),
    },
  };
}

/** @throws Error when the container has no port of that name */
function portOf({ container }: PodContainer, port: number | string): number {
  if (typeof port === "number") return port;
  const named = container.ports?.find(({ name }) => name === port)?.containerPort ?? Number(port);
  if (Number.isInteger(named)) return named;
  throw new Error(`container "${container.name}" has no port "${port}": name one in spec.containers[].ports`);
}
