/** Whether a driver can be reached, in words that say what to do: checked before gRPC reports it in its own words. */
import { type Stats, statSync } from "node:fs";
import { connect } from "node:net";
import { socketPathOf } from "@longshore/csi";
import { UsageError } from "../../exit.ts";

/** @throws UsageError unless someone listens on the socket, for this user */
export async function mustBeReachable(flag: string, endpoint: string): Promise<void> {
  let path: string;
  try {
    path = socketPathOf(endpoint);
  } catch (error) {
    throw new UsageError(`${flag}: ${error instanceof Error ? error.message : endpoint}`);
  }
  const stat = statOf(flag, path);
  if (stat.isDirectory()) throw new UsageError(`${flag}: ${path} is a directory: name the socket in it`);
  if (!stat.isSocket()) throw new UsageError(`${flag}: ${path} is a file and no socket`);
  const problem = await connectionProblem(path);
  if (problem === undefined) return;
  const remedies: Readonly<Record<string, string>> = {
    ECONNREFUSED: `no process listens on ${path}, though the socket exists: the driver has ended, start it`,
    EACCES: `this user may not connect to ${path}: run as the user of the driver, or let the socket be written to`,
  };
  throw new UsageError(`${flag}: ${remedies[problem] ?? `cannot connect to ${path} (${problem})`}`);
}

function statOf(flag: string, path: string): Stats {
  try {
    return statSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new UsageError(`${flag}: there is no socket ${path}: start the driver, or correct the path`);
    }
    if (code === "EACCES") {
      throw new UsageError(`${flag}: this user may not look at ${path}: run as the user of the driver`);
    }
    throw new UsageError(`${flag}: cannot look at ${path}`, { cause: error });
  }
}

/** The code of what went wrong, or undefined when the connection came about. */
function connectionProblem(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (problem: string | undefined) => {
      socket.destroy();
      resolve(problem);
    };
    socket.once("connect", () => end(undefined));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}
