/** The whole durable server: what it leaves on disk, and what a restart finds there. */
import { readdirSync, statSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordingLogger } from "@longshore/runtime";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runApiServer } from "./run-api-server.ts";
import { HttpsConnections } from "./testing/http.ts";
import { realEnv } from "./testing/serve.ts";

let directory: string;
let dataDir: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "api-"));
  dataDir = join(directory, "data");
});
afterEach(() => rm(directory, { recursive: true }));

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

it("keeps its keys, certificates and kubeconfig from others", async () => {
  const kubeconfigOut = join(directory, "out", "kubeconfig");
  const server = await runApiServer(realEnv, { dataDir, port: 0, kubeconfigOut });
  await server.stop();
  expect(modeOf(kubeconfigOut)).toBe("600");
  expect(modeOf(dataDir)).toBe("700");
  const pki = readdirSync(join(dataDir, "pki")).sort();
  expect(pki).toEqual(["admin-token", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key", "sa.key"]);
  for (const file of pki) expect(`${file} ${modeOf(join(dataDir, "pki", file))}`).toBe(`${file} 600`);
});

it("has after a restart the same authority, token and objects, so that clients go on", async () => {
  const kubeconfigOut = join(directory, "kubeconfig");
  const first = await runApiServer(realEnv, { dataDir, port: 0, kubeconfigOut });
  const authorization = { authorization: `Bearer ${first.adminToken}` };
  const to = new HttpsConnections(first.url, { ca: first.caCert });
  const path = "/api/v1/namespaces/default/configmaps";
  const headers = { ...authorization, "content-type": "application/json" };
  const made = await to.json({ method: "POST", path, headers, body: '{"metadata":{"name":"kept"}}' });
  const written = await readFile(kubeconfigOut, "utf8");
  to.close();
  await first.stop();

  const second = await runApiServer(realEnv, { dataDir, port: first.port, kubeconfigOut });
  expect([second.caCert, second.adminToken, second.url]).toEqual([first.caCert, first.adminToken, first.url]);
  expect(await readFile(kubeconfigOut, "utf8")).toBe(written);
  const again = new HttpsConnections(second.url, { ca: first.caCert });
  expect(await again.json({ path: `${path}/kept`, headers: authorization })).toEqual(made);
  again.close();
  await second.stop();
});

it("calls onAnswered after an answer is sent, and not while a watch is open", async () => {
  let answers = 0;
  let resolveAnswered = () => {};
  const answered = new Promise<void>((resolve) => {
    resolveAnswered = resolve;
  });
  const server = await runApiServer(realEnv, {
    port: 0,
    onAnswered: () => {
      answers++;
      resolveAnswered();
    },
  });
  const headers = { authorization: `Bearer ${server.adminToken}` };
  const to = new HttpsConnections(server.url, { ca: server.caCert });
  const watch = await to.open({ path: "/api/v1/persistentvolumes?watch=true", headers });
  expect(answers).toBe(0);
  expect((await to.send({ path: "/api/v1/persistentvolumes", headers })).status).toBe(200);
  await answered;
  expect(answers).toBe(1);
  watch.destroy();
  to.close();
  await server.stop();
});

it("says where it cannot listen, and leaves nothing behind", async () => {
  const other = createServer();
  const port = await new Promise<number>((resolve) => {
    other.listen(0, "127.0.0.1", () => resolve((other.address() as { port: number }).port));
  });
  await expect(runApiServer(realEnv, { dataDir, port })).rejects.toThrow(
    `the API server cannot listen on 127.0.0.1:${port}`,
  );
  await new Promise((resolve) => other.close(resolve));
  const server = await runApiServer(realEnv, { dataDir, port });
  await server.stop();
});

it("replaces no file that is not its own", async () => {
  const kubeconfigOut = join(directory, "config");
  await writeFile(kubeconfigOut, "clusters: [{name: production}]");
  await expect(runApiServer(realEnv, { port: 0, kubeconfigOut })).rejects.toThrow(
    `${kubeconfigOut} is there, and is not a kubeconfig that this command has written`,
  );
  expect(await readFile(kubeconfigOut, "utf8")).toContain("production");
});

it("does not take a directory for its kubeconfig", async () => {
  await expect(runApiServer(realEnv, { port: 0, kubeconfigOut: directory })).rejects.toThrow(
    `${directory} is there and cannot be read`,
  );
});

it("says which feature gates have no effect", async () => {
  const logger = recordingLogger();
  const featureGates = { NoSuchGate: true, WatchList: true };
  const server = await runApiServer({ ...realEnv, logger }, { port: 0, featureGates });
  await server.stop();
  const warnings = logger.lines.filter(({ level }) => level === "warn").map(({ fields }) => fields);
  expect(warnings).toEqual([expect.objectContaining({ gate: "NoSuchGate" })]);
});

it("lets go of its data and its port when the kubeconfig cannot be written", async () => {
  const file = join(directory, "file");
  await writeFile(file, "");
  const kubeconfigOut = join(file, "kubeconfig");
  const first = await runApiServer(realEnv, { dataDir, port: 0 });
  await first.stop();
  const { port } = first;
  await expect(runApiServer(realEnv, { dataDir, port, kubeconfigOut })).rejects.toThrow(file);
  await (await runApiServer(realEnv, { dataDir, port })).stop();
});

it("has definitions from files, also after a restart without them, and names a file in which there are none", async () => {
  const manifests = join(directory, "manifests");
  await mkdir(manifests);
  const definition = (plural: string, kind: string) => `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${plural}.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: ${plural}, kind: ${kind}}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`;
  const other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n---\n";
  await writeFile(
    join(manifests, "a.yaml"),
    `${definition("boats", "Boat")}${other}${definition("sails", "Sail")}`,
  );
  for (const definitionPaths of [[manifests], []]) {
    const server = await runApiServer(realEnv, { dataDir, port: 0, definitionPaths });
    const to = new HttpsConnections(server.url, { ca: server.caCert });
    const headers = { authorization: `Bearer ${server.adminToken}` };
    for (const plural of ["boats", "sails"]) {
      expect((await to.send({ path: `/apis/example.com/v1/${plural}`, headers })).status).toBe(200);
    }
    to.close();
    await server.stop();
  }
  await writeFile(join(manifests, "a.yaml"), "kind: ConfigMap\n");
  const none = runApiServer(realEnv, { dataDir, port: 0, definitionPaths: [manifests] });
  await expect(none).rejects.toThrow(`${manifests}: there is no CustomResourceDefinition in it`);
});
