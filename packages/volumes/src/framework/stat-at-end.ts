/** What is at the end of a path, whose last element may be a link. */
import { posix } from "node:path";
import { type FileStat, type Host, HostError } from "@longshore/runtime";

const linksMax = 40;

/** Facts about what the links at `path` lead to, or undefined: nothing. @throws HostError with ELOOP for a loop of links */
export async function statAtEnd(host: Host, path: string): Promise<FileStat | undefined> {
  let at = path;
  for (let links = 0; links <= linksMax; links++) {
    const stat = await host.stat(at);
    if (stat?.kind !== "symlink") return stat;
    at = posix.resolve(posix.dirname(at), (await host.readLink(at)) ?? "");
  }
  throw new HostError("stat", path, "ELOOP");
}
