/** Serves the driver at `$CSI_ENDPOINT`, with volumes in `$VOLUMES_DIR`, as the node `$NODE_NAME`. */
import { mkdirSync, realpathSync } from "node:fs";
import { grpcListener } from "@longshore/csi";
import { createLogger, kernelHost, unprivilegedHost } from "@longshore/runtime";
import { directoryDriver } from "./driver.ts";

const {
  CSI_ENDPOINT = "unix:///csi/csi.sock",
  VOLUMES_DIR = "/var/lib/kubelet/directories",
  NODE_NAME = "node-1",
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
    name: "directories.example.com",
    nodeId: NODE_NAME,
  }),
);
logger.info("serving", { endpoint: server.endpoint });
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => void server.close());
