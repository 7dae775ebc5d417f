/**
 * Serves the webhook on `$PORT` for the provider `$PROVIDER_TYPE`, with the certificate and key in `$CERTIFICATE_DIR` (`tls.crt`, `tls.key`).
 * It reads Clusters from the seed of `$KUBECONFIG`, or of the pod that it runs in.
 */
import { readFile } from "node:fs/promises";
import { createHttpClient, inClusterConfig, loadKubeconfig } from "@longshore/kube";
import { createLogger, kernelHost, noMeter, systemClock, systemRandom } from "@longshore/runtime";
import { serveAdmission } from "./admission-server.ts";
import { providers } from "./providers.ts";
import { webhookHandlers } from "./webhook.ts";

const {
  PORT = "9443",
  HOST = "127.0.0.1",
  PROVIDER_TYPE = "aws",
  CSI_MIGRATION_VERSION = "1.18",
  CERTIFICATE_DIR = "/etc/webhook",
  KUBECONFIG,
} = process.env;
const logger = createLogger({ format: "human", level: "info" });
const provider = providers.find(({ type }) => type === PROVIDER_TYPE);
if (provider === undefined) {
  const known = providers.map(({ type }) => type).join(", ");
  logger.error(`PROVIDER_TYPE "${PROVIDER_TYPE}": choose ${known}`);
  process.exit(1);
}
const base = { clock: systemClock, random: systemRandom, logger, meter: noMeter };
const config =
  KUBECONFIG === undefined
    ? await inClusterConfig(kernelHost(), process.env)
    : await loadKubeconfig(kernelHost(), { path: KUBECONFIG });
const kube = createHttpClient(base, config);
const [certificate, key] = await Promise.all(
  ["tls.crt", "tls.key"].map((name) => readFile(`${CERTIFICATE_DIR}/${name}`, "utf8")),
);
const server = await serveAdmission(base, {
  host: HOST,
  port: Number(PORT),
  certificate: certificate ?? "",
  key: key ?? "",
  handlers: webhookHandlers(kube, { provider, csiMigrationVersion: CSI_MIGRATION_VERSION }),
});
logger.info("serving", { url: server.url, provider: provider.type });
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => void server.close().then(() => kube.close()));
}
