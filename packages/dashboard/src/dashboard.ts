/** A web page on the loopback interface that shows a cluster live. */
import type { KubeEnv } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { readPageFiles } from "./http-page-files.ts";
import { createDashboardServer } from "./http-server.ts";
import { type ReadCrossing, startStateFeed } from "./state-feed.ts";

/** Where it listens. */
export interface DashboardOptions {
  /** 0 or left out: any free port. */
  readonly port?: number;
  /** Default: 127.0.0.1, so that only users of this machine can connect. */
  readonly host?: string;
  /** How the crossing goes, asked every second; none is shown where this is left out. */
  readonly crossing?: ReadCrossing;
}

/** A running dashboard. */
export interface Dashboard extends Component {
  /** The page's address with the token that opens it: everyone who has the address can look. */
  readonly url: string;
}

/** The page cannot be served at the address requested. */
export class DashboardAddressError extends Error {
  override readonly name = "DashboardAddressError";
}

/** Starts the dashboard; resolves once it listens. @throws DashboardAddressError */
export async function startDashboard(env: KubeEnv, options: DashboardOptions = {}): Promise<Dashboard> {
  const { host = "127.0.0.1", port = 0 } = options;
  const files = await readPageFiles();
  const token = `${env.random.uuid("dashboard token")}${env.random.uuid("dashboard token")}`.replaceAll(
    "-",
    "",
  );
  const feed = startStateFeed(env, options.crossing);
  const server = createDashboardServer({ clock: env.clock, feed, files, token });
  const stop = async () => {
    await server.close();
    await feed.stop();
  };
  try {
    const address = await server.listen({ host, port });
    return { url: `${address}/${token}/`, stop };
  } catch (cause) {
    await stop();
    throw new DashboardAddressError(
      `cannot serve the dashboard at ${host} port ${port}: choose another \`port\`, or 0 for any`,
      { cause },
    );
  }
}
