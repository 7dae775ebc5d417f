/** TLS and who we are, against the embedded server: right, wrong, and explained. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority, type RunningApiServer, runApiServer } from "@longshore/apiserver";
import {
  type ClusterConfig,
  createHttpClient,
  fixedCredential,
  KubeApiError,
  loadKubeconfig,
  resources,
} from "@longshore/kube";
import { kernelHost } from "@longshore/runtime";
import { realEnv } from "@longshore/testing/kube";
import { afterAll, beforeAll, expect, test } from "vitest";

const signal = new AbortController().signal;
let directory: string;
let server: RunningApiServer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "ls-tls-"));
  server = await runApiServer(realEnv, {
    dataDir: join(directory, "data"),
    port: 0,
    kubeconfigOut: join(directory, "kubeconfig"),
  });
});
afterAll(async () => {
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Lists the namespaces with this configuration. */
async function namespacesWith(config: ClusterConfig): Promise<readonly string[]> {
  const kube = createHttpClient(realEnv, config);
  try {
    const { items } = await kube.list(resources.namespaces, { signal });
    return items.map((item) => item.metadata.name);
  } finally {
    await kube.close();
  }
}

const base = () => ({
  server: server.url,
  ca: server.caCert,
  credentials: fixedCredential({ authorization: `Bearer ${server.adminToken}` }),
});

test("the kubeconfig that the server writes is all it takes", async () => {
  const config = await loadKubeconfig(kernelHost(), { path: join(directory, "kubeconfig") });
  expect(await namespacesWith(config)).toContain("kube-system");
});

test("a server whose certificate another authority signed is not trusted, unless asked to", async () => {
  const { certificate } = await createAuthority("other", realEnv.clock.now());
  await expect(namespacesWith({ ...base(), ca: certificate })).rejects.toThrow(
    /certificate is not trusted: check certificate-authority/,
  );
  const { ca: _, ...blind } = base();
  expect(await namespacesWith({ ...blind, insecureSkipTlsVerify: true })).toContain("default");
});

test("a certificate for another name is an error of its own, and can be allowed for", async () => {
  await expect(namespacesWith({ ...base(), tlsServerName: "elsewhere.example" })).rejects.toThrow(
    /for another name: check the address, or set tls-server-name/,
  );
  expect(await namespacesWith({ ...base(), tlsServerName: "kubernetes.default.svc" })).toContain("default");
});

test("a wrong token is the server's refusal", async () => {
  const failure = await namespacesWith({
    ...base(),
    credentials: fixedCredential({ authorization: "Bearer wrong" }),
  }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(KubeApiError);
  expect((failure as KubeApiError).code).toBe(401);
});

test("an unusable certificate, and a port that speaks no TLS, are named", async () => {
  const certificate = { cert: "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", key: "x" };
  await expect(namespacesWith({ ...base(), credentials: fixedCredential({ certificate }) })).rejects.toThrow(
    /a certificate or key of the kubeconfig cannot be used/,
  );
  const plain = createServer((_, response) => response.end());
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  const { port } = plain.address() as AddressInfo;
  await expect(namespacesWith({ ...base(), server: `https://127.0.0.1:${port}` })).rejects.toThrow(
    /does not speak TLS/,
  );
  await new Promise((resolve) => plain.close(resolve));
});
