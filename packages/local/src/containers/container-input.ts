/**
 * The standard input of a container, between its shim and the node agent: a named pipe, which outlives the agent. Real form.
 * Source: core/v1 Container, `stdin` and `stdinOnce`.
 */
import { execFileSync } from "node:child_process";
import { constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import type { ContainerInput } from "./pod-runtime.ts";
import { writeToStream } from "./write-to-stream.ts";

/** The name of the pipe in the container's directory. */
export const inputName = "stdin";

/** Makes the pipe, for this user alone, and opens it. @param once it ends with the first client; else never */
export function makeContainerInput(path: string, once: boolean): Socket {
  // A client of the run before may still hold the old one.
  rmSync(path, { force: true });
  execFileSync("mkfifo", ["-m", "600", path], { stdio: ["ignore", "ignore", "pipe"], timeout: 30_000 });
  // A pipe that this process can write to has no end.
  const access = once ? constants.O_RDONLY : constants.O_RDWR;
  const fd = openSync(path, access | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  return new Socket({ fd, readable: true, writable: false });
}

/** Passes on what comes, until either end is closed. */
export function feedContainer(input: Socket, stdin: Writable): void {
  for (const stream of [input, stdin]) stream.on("error", () => {});
  stdin.on("close", () => input.destroy());
  input.pipe(stdin);
}

/** The agent's side; undefined for a container that has no input, or has had all of it. The signal lets go of it. */
export function openContainerInput(path: string, signal: AbortSignal): ContainerInput | undefined {
  const fd = openToWrite(path);
  if (fd === undefined) return undefined;
  const pipe = new Socket({ fd, readable: false, writable: true });
  pipe.on("error", () => {});
  const letGo = () => void pipe.destroy();
  signal.addEventListener("abort", letGo, { once: true });
  pipe.on("close", () => signal.removeEventListener("abort", letGo));
  if (signal.aborted) letGo();
  return { write: (bytes) => writeToStream(pipe, bytes), endInput: () => void pipe.end() };
}

function openToWrite(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // No pipe, or no reader.
    if (code === "ENOENT" || code === "ENXIO") return undefined;
    throw error;
  }
}
