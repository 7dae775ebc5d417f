/** The contract of the KubeClient seam, against the embedded API server in process and over HTTPS. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiServer, memoryStore, runApiServer } from "@longshore/apiserver";
import { createHttpClient, fixedCredential } from "@longshore/kube";
import { realEnv } from "@longshore/testing/kube";
import { kubeClientContract } from "../../../packages/kube/src/testing/client.contract.ts";

kubeClientContract("embedded server, in process", async () => {
  const server = createApiServer(realEnv, { store: memoryStore() });
  await server.start();
  return { client: server.client(), close: () => server.stop() };
});

kubeClientContract("embedded server, over HTTPS", async () => {
  const directory = await mkdtemp(join(tmpdir(), "ls-kube-"));
  const server = await runApiServer(realEnv, { dataDir: directory, port: 0 });
  const client = createHttpClient(realEnv, {
    server: server.url,
    ca: server.caCert,
    credentials: fixedCredential({ authorization: `Bearer ${server.adminToken}` }),
  });
  return {
    client,
    async close() {
      await client.close();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
});
