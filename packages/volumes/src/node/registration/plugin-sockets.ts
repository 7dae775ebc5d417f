/**
 * Which registration sockets there are: everything below the registration directory, found by
 * reading it; watching only says when to look again. Source: docs/behaviour/node-agent.md 1.2.
 */
import type { Host } from "@longshore/runtime";

/** Sockets by path, each with an identity that changes when the socket is recreated. */
export type PluginSockets = ReadonlyMap<string, string>;

/** Finds the sockets below `directory`; names that begin with a dot are not looked at. */
export async function findPluginSockets(host: Host, directory: string): Promise<PluginSockets> {
  const sockets = new Map<string, string>();
  await collect(host, directory, sockets);
  return sockets;
}

async function collect(host: Host, directory: string, sockets: Map<string, string>): Promise<void> {
  for (const name of (await host.readDirectory(directory)) ?? []) {
    if (name.startsWith(".")) continue;
    const path = `${directory}/${name}`;
    const stat = await host.stat(path);
    if (stat?.kind === "directory") await collect(host, path, sockets);
    else if (stat?.kind === "socket") sockets.set(path, stat.inode);
  }
}
