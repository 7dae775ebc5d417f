/** Whether a driver can be reached, in words that say what to do: looked at before gRPC reports it in its own words. */
import { statSync } from "node:fs";
import { connect } from "node:net";
import { socketPathOf } from "@longshore/csi";
import { UsageError } from "../../exit.ts";

/** @throws UsageError unless someone listens on the socket, for this user */
export async function mustBeReachable(flag: string, endpoint: string): Promise<void> {
  const problem = await reachProblem(endpoint);
  if (problem !== undefined) throw new UsageError(`${flag}: ${problem}`);
}

/** Why this user cannot reach a driver at the endpoint now, with the remedy; undefined when someone listens there. */
export async function reachProblem(endpoint: string): Promise<string | undefined> {
  let path: string;
  try {
    path = socketPathOf(endpoint);
  } catch (error) {
    return error instanceof Error ? error.message : endpoint;
  }
  const notSocket = socketProblem(path);
  if (notSocket !== undefined) return notSocket;
  const problem = await connectionProblem(path);
  if (problem === undefined) return undefined;
  const remedies: Readonly<Record<string, string>> = {
    ECONNREFUSED: `no process listens on ${path}, though the socket exists: the driver has ended, start it`,
    EACCES: `this user may not connect to ${path}: run as the user of the driver, or let the socket be written to`,
  };
  return remedies[problem] ?? `cannot connect to ${path} (${problem})`;
}

function socketProblem(path: string): string | undefined {
  try {
    const stat = statSync(path);
    if (stat.isDirectory()) return `${path} is a directory: name the socket in it`;
    return stat.isSocket() ? undefined : `${path} is a file and no socket`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      return `there is no socket ${path}: start the driver, or correct the path`;
    }
    if (code === "EACCES") return `this user may not look at ${path}: run as the user of the driver`;
    return `cannot look at ${path} (${code})`;
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
