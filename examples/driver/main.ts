/**
 * Serves the driver at `$CSI_ENDPOINT`, with volumes in `$VOLUMES_DIR`, as the node `$NODE_NAME`. `SHARED=1`: each node has that directory.
 * `$DRIVER_NAME` gives it another name, as `longshore driver qualify` asks for.
 */
import { mkdirSync, realpathSync } from "node:fs";
import { grpcListener } from "@longshore/csi";
import { createLogger, kernelHost, unprivilegedHost } from "@longshore/runtime";
import { directoryDriver } from "./driver.ts";

const {
  CSI_ENDPOINT = "unix:///csi/csi.sock",
  VOLUMES_DIR = "/var/lib/kubelet/directories",
  NODE_NAME = "node-1",
  DRIVER_NAME = "directories.example.com",
  SHARED,
} = process.env;
mkdirSync(VOLUMES_DIR, { recursive: true, mode: 0o700 });
// Without root, links stand in for mounts: enough to try it out.
const host = process.getuid?.() === 0 ? kernelHost() : unprivilegedHost();
const logger = createLogger({ format: "human", level: "info" });
const server = await grpcListener({ logger }).serve(
  CSI_ENDPOINT,
  directoryDriver({
    host,
    dir: realpathSync(VOLUMES_DIR),
    name: DRIVER_NAME,
    nodeId: NODE_NAME,
    shared: SHARED === "1",
  }),
);
logger.info("serving", { endpoint: server.endpoint });
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => void server.close());
