/**
 * A program whose streams a client holds: `kubectl exec`, `cp` and `attach`. Source: Kubernetes remotecommand,
 * `v4.channel.k8s.io` and `v5.channel.k8s.io`: a stream for each of error, stdin, stdout, stderr and, with a terminal, resize; how the program has ended is a Status on the
 * first.
 */
import type { ExecProcess } from "../containers/pod-runtime.ts";
import type { RemoteStream } from "./remote-stream.ts";
import { terminalSizes } from "./terminal-sizes.ts";

/** Which streams the client asks for. */
export interface RemoteStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  /** The program has a terminal: standard error comes with standard output, and the client says how large it is. */
  readonly tty: boolean;
}

/** The types of the streams that have to be there before the program starts. */
export function expectedStreams({ stdin, stdout, stderr, tty }: RemoteStreams): readonly string[] {
  return [
    "error",
    ...(stdin ? ["stdin"] : []),
    ...(stdout ? ["stdout"] : []),
    ...(stderr && !tty ? ["stderr"] : []),
    ...(tty ? ["resize"] : []),
  ];
}

/** Connects the program with the client's streams until it has ended, and reports how. */
export async function runRemoteCommand(
  streams: ReadonlyMap<string, RemoteStream>,
  start: () => Promise<ExecProcess>,
): Promise<void> {
  const errors = streams.get("error");
  try {
    const process = await start();
    const stdin = streams.get("stdin");
    if (stdin === undefined) process.endInput();
    else void feed(stdin, process);
    const resize = streams.get("resize");
    if (resize !== undefined) void followSizes(resize.input, process);
    const stdout = streams.get("stdout");
    const output = [drain(process.stdout, stdout), drain(process.stderr, streams.get("stderr") ?? stdout)];
    await Promise.all(output);
    const exitCode = await process.exitCode;
    await errors?.write(Buffer.from(JSON.stringify(statusOf(exitCode))));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const status = { metadata: {}, status: "Failure", reason: "InternalError", message, code: 500 };
    await errors?.write(Buffer.from(JSON.stringify(status)));
  } finally {
    await Promise.all([...streams.values()].map((stream) => stream.end()));
  }
}

function statusOf(exitCode: number): object {
  if (exitCode === 0) return { metadata: {}, status: "Success" };
  return {
    metadata: {},
    status: "Failure",
    reason: "NonZeroExitCode",
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    details: { causes: [{ reason: "ExitCode", message: String(exitCode) }] },
  };
}

async function feed(stdin: RemoteStream, process: ExecProcess): Promise<void> {
  for await (const bytes of stdin.input) await process.write(bytes);
  process.endInput();
}

async function drain(output: AsyncIterable<Uint8Array>, to: RemoteStream | undefined): Promise<void> {
  for await (const bytes of output) await to?.write(bytes);
}

async function followSizes(input: AsyncIterable<Uint8Array>, process: ExecProcess): Promise<void> {
  for await (const size of terminalSizes(input)) process.resize?.(size);
}
