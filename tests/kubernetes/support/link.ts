/** The way from a client to the API server, as bytes over TCP, which a test can cut or let go silent. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { ControlPlane } from "./control-plane.ts";

/** A link. */
export interface Link {
  /** Where a client reaches the API server over this link. */
  readonly url: string;
  /** Breaks every connection, and refuses new ones until `restore`. */
  cut(): void;
  /** Carries nothing more in either direction, without closing connections, until `restore`. */
  silence(): void;
  /** Carries everything again; what was under way in the silence is broken. */
  restore(): void;
  stop(): Promise<void>;
}

/** Opens a link to the control plane. */
export async function openLink(kubernetes: ControlPlane): Promise<Link> {
  const { hostname, port } = new URL(kubernetes.url);
  let state: "open" | "silent" | "cut" = "open";
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (state === "cut") {
      client.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("data", (chunk) => {
        if (state !== "silent") to.write(chunk);
      });
      from.on("close", () => {
        sockets.delete(from);
        if (state !== "silent") to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      state = "cut";
      breakAll();
    },
    silence() {
      state = "silent";
    },
    restore() {
      state = "open";
      breakAll();
    },
    async stop() {
      state = "cut";
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
