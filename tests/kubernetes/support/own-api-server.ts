/** Our API server as a test of the real one sees it: the same handle, so that the test runs on both. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runApiServer } from "../../../packages/apiserver/src/index.ts";
import { HttpsConnections } from "../../../packages/apiserver/src/testing/http.ts";
import { realEnv } from "./clients.ts";
import type { ControlPlane } from "./control-plane.ts";

/** What a test of the API alone needs of a control plane. */
export type ServedApi = Pick<
  ControlPlane,
  "url" | "caPath" | "adminToken" | "kubeconfigFor" | "directory" | "call" | "stop"
>;

/** Starts ours as 1.20; resolves when it serves. */
export async function startOwnApiServer(): Promise<ServedApi> {
  const directory = await mkdtemp(join(tmpdir(), "ls-own-"));
  const kubeconfigPath = join(directory, "kubeconfig");
  const server = await runApiServer(realEnv, {
    dataDir: join(directory, "data"),
    port: 0,
    kubeconfigOut: kubeconfigPath,
    emulatedVersion: "1.20",
  });
  const { url, caCert, adminToken } = server;
  const caPath = join(directory, "ca.crt");
  await writeFile(caPath, caCert);
  const to = new HttpsConnections(url, { ca: caCert });
  return {
    url,
    caPath,
    adminToken,
    directory,
    async kubeconfigFor(user) {
      if (user !== "admin") throw new Error(`this server has no user ${user}`);
      return kubeconfigPath;
    },
    async call(method, path, body, { token = adminToken, contentType = "application/json" } = {}) {
      const headers = { authorization: `Bearer ${token}`, "content-type": contentType };
      const text = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
      const answer = await to.send({ method, path, headers, ...(text === undefined ? {} : { body: text }) });
      const said = answer.body.toString();
      return { status: answer.status, body: said.startsWith("{") ? JSON.parse(said) : said };
    },
    async stop() {
      to.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
