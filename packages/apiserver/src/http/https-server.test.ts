/** The server over real TLS: authentication, protocols, limits and shutdown. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTls } from "node:tls";
import { gunzipSync } from "node:zlib";
import { resources } from "@longshore/kube";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, janeToken, realEnv, serveForTest, type TestServer } from "../testing/serve.ts";
import { createAuthority, issueCertificate, type KeyPair } from "./issue-certificate.ts";
import { bodyBytesMax } from "./read-body.ts";

const signal = new AbortController().signal;
const admin = { authorization: `Bearer ${adminToken}` };
const json = { ...admin, "content-type": "application/json" };
const configMaps = "/api/v1/namespaces/default/configmaps";

let test: TestServer;
const opened: HttpsConnections[] = [];

beforeAll(async () => {
  test = await serveForTest();
});
afterAll(() => test.stop());
afterEach(() => {
  for (const connections of opened.splice(0)) connections.close();
});

function connections(client?: KeyPair, to = test): HttpsConnections {
  const identity = client === undefined ? {} : { cert: client.certificate, key: client.key };
  const made = new HttpsConnections(to.front.url, { ca: to.authority.certificate, ...identity });
  opened.push(made);
  return made;
}

describe("who asks", () => {
  const issue = (authority: KeyPair, commonName: string, organizations: readonly string[]) =>
    issueCertificate(authority, { commonName, organizations, now: realEnv.clock.now() });
  const volumes = "/api/v1/persistentvolumes";

  it("with a token of the administrator may do everything", async () => {
    expect((await connections().send({ path: volumes, headers: admin })).status).toBe(200);
  });

  it("without credentials is anonymous, and may read the health of the server", async () => {
    expect((await connections().send({ path: "/healthz" })).body.toString()).toBe("ok");
    expect(await connections().json({ path: volumes })).toMatchObject({
      code: 403,
      message: expect.stringContaining('User "system:anonymous" cannot list resource "persistentvolumes"'),
    });
  });

  it("with an unknown token is refused, even where anonymous requests are allowed", async () => {
    const headers = { authorization: "Bearer no-such-token" };
    for (const path of [volumes, "/healthz"]) {
      expect(await connections().json({ path, headers })).toMatchObject({
        code: 401,
        reason: "Unauthorized",
      });
    }
  });

  it("with a token of a user without rights gets an error that names the user", async () => {
    const headers = { authorization: `Bearer ${janeToken}` };
    expect((await connections().json({ path: volumes, headers })).message).toContain('User "jane"');
  });

  it.each([
    ["system:node:n1", ["system:nodes"], 403],
    ["root", ["devs", "system:masters"], 200],
    ["jane", ["devs"], 403],
    ["without-groups", [], 403],
  ])("with a certificate for %s in %j is answered %i", async (name, groups, code) => {
    const answer = await connections(await issue(test.authority, name, groups)).send({ path: volumes });
    expect(answer.status).toBe(code);
    if (code === 403) expect(answer.body.toString()).toContain(name);
  });

  it("with a certificate of another authority is anonymous, whatever it says, also of the same name", async () => {
    const other = await createAuthority("test", realEnv.clock.now());
    const client = await issue(other, "root", ["system:masters"]);
    const answer = await connections(client).json({ path: volumes });
    expect(answer).toMatchObject({ code: 403, message: expect.stringContaining("system:anonymous") });
  });

  it("with a server certificate, or one from an authority of the client, is anonymous", async () => {
    const now = realEnv.clock.now();
    const asServer = await issueCertificate(test.authority, {
      commonName: "root",
      organizations: ["system:masters"],
      hosts: ["localhost"],
      now,
    });
    expect((await connections(asServer).send({ path: volumes })).status).toBe(403);
    const own = await createAuthority("system:masters", now);
    expect((await connections(own).send({ path: volumes })).status).toBe(403);
  });

  it("is the same in HTTP/2", async () => {
    const client = await issue(test.authority, "root", ["system:masters"]);
    const { certificate: cert, key } = client;
    const session = connectHttp2(test.front.url, { ca: test.authority.certificate, cert, key });
    const stream = session.request({ ":path": volumes });
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(200);
    stream.close();
    session.close();
  });
});

describe("protocols", () => {
  it.each([
    [["h2"], "h2"],
    [["http/1.1"], "http/1.1"],
    [["h2", "http/1.1"], "h2"],
  ])("offered as %j, %s is spoken", async (offered, spoken) => {
    const socket = connectTls({
      host: "127.0.0.1",
      port: test.front.port,
      ca: test.authority.certificate,
      ALPNProtocols: offered,
    });
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe(spoken);
    socket.destroy();
  });

  it("both carry many requests on one connection", async () => {
    const session = connectHttp2(test.front.url, { ca: test.authority.certificate });
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const stream = session.request({ ":path": "/api/v1/nodes", ...admin });
        const [headers] = await once(stream, "response");
        stream.resume();
        await once(stream, "end");
        return headers[":status"];
      }),
    );
    session.close();
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  it("both survive what is no request at all", async () => {
    for (const protocol of ["h2", "http/1.1"]) {
      const socket = connectTls({
        host: "127.0.0.1",
        port: test.front.port,
        ca: test.authority.certificate,
        ALPNProtocols: [protocol],
      });
      socket.on("error", () => {});
      await once(socket, "secureConnect");
      socket.resume();
      socket.write(Buffer.alloc(4096, 0xa5));
      await once(socket, "close");
    }
    expect((await connections().send({ path: "/healthz" })).status).toBe(200);
  });
});

describe("bodies", () => {
  const withData = (bytes: number) =>
    JSON.stringify({ metadata: { generateName: "big-" }, data: { a: "x".repeat(bytes) } });

  it("beyond the limit are refused with 413, announced or not, and the connection goes on", async () => {
    const body = withData(bodyBytesMax);
    for (const headers of [json, { ...json, "transfer-encoding": "chunked" }]) {
      const to = connections();
      const answer = await to.send({ method: "POST", path: configMaps, headers, body });
      expect(answer.status).toBe(413);
      expect((await to.send({ path: "/healthz" })).status).toBe(200);
    }
  });

  it("just under the limit are read", async () => {
    const answer = await connections().send({
      method: "POST",
      path: configMaps,
      headers: json,
      body: withData(900_000),
    });
    expect(answer.status).toBe(201);
  });

  it("may be YAML or protobuf, and nothing that is neither", async () => {
    const yaml = { ...admin, "content-type": "application/yaml" };
    const body = "metadata: {name: from-yaml}\ndata: {a: 'yes'}\n";
    const made = await connections().json({ method: "POST", path: configMaps, headers: yaml, body });
    expect(made).toMatchObject({ kind: "ConfigMap", data: { a: "yes" } });
    const text = { ...admin, "content-type": "text/plain" };
    expect((await connections().send({ method: "POST", path: configMaps, headers: text, body })).status).toBe(
      415,
    );
  });

  it("are gzip where that is asked for and worth it", async () => {
    const headers = { ...admin, "accept-encoding": "gzip" };
    const small = await connections().send({ path: "/version", headers });
    expect(small.headers["content-encoding"]).toBeUndefined();
    const large = await connections().send({ path: configMaps, headers });
    expect(large.headers).toMatchObject({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    const plain = await connections().send({ path: configMaps, headers: admin });
    expect(plain.headers["content-encoding"]).toBeUndefined();
    expect(gunzipSync(large.body).equals(plain.body)).toBe(true);
  });

  it("are left away for HEAD", async () => {
    const answer = await connections().send({ method: "HEAD", path: "/version", headers: admin });
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
  });
});

describe("watches", () => {
  it("send changes as they happen, a line each", async () => {
    const kube = test.server.client();
    const response = await connections().open({
      path: `${configMaps}?watch=1&fieldSelector=metadata.name=w`,
      headers: admin,
    });
    await kube.create(resources.configMaps, { metadata: { name: "w", namespace: "default" } }, { signal });
    const [chunk] = await once(response, "data");
    expect(String(chunk).endsWith("}\n")).toBe(true);
    expect(JSON.parse(String(chunk))).toMatchObject({ type: "ADDED", object: { metadata: { name: "w" } } });
    response.destroy();
  });

  it("whose client is gone are let go", async () => {
    const { watches } = test.server.registry.context;
    await expect.poll(() => watches.size).toBe(0);
    const response = await connections().open({
      path: `${configMaps}?watch=1&resourceVersion=0`,
      headers: admin,
    });
    expect(watches.size).toBe(1);
    response.destroy();
    await expect.poll(() => watches.size).toBe(0);
  });

  it("end with the server, which then leaves its port", async () => {
    const own = await serveForTest();
    const to = connections(undefined, own);
    const response = await to.open({ path: "/api/v1/nodes?watch=1", headers: admin });
    const session = connectHttp2(own.front.url, { ca: own.authority.certificate });
    session.on("error", () => {});
    const stream = session.request({ ":path": "/api/v1/nodes?watch=1", ...admin });
    await once(stream, "response");
    const ends = [response, stream].map(async (body) => {
      body.resume();
      await once(body, "end"); // An error in place of the end, a stream cut off, fails the test.
    });
    await own.stop();
    await Promise.all(ends);
    session.destroy();
    await expect(to.send({ path: "/healthz" })).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
    const again = connectTls({ host: "127.0.0.1", port: own.front.port });
    await expect(once(again, "secureConnect")).rejects.toThrow(/ECONNREFUSED/);
  });
});
