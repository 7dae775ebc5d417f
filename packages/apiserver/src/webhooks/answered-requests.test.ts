import { KubeApiError, type KubeClient, type KubeObject, resources } from "@longshore/kube";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { HttpsConnections } from "../testing/http.ts";
import { adminToken, serveForTest, type TestServer } from "../testing/serve.ts";
import { allowing, patching, startWebhookServer, type WebhookServer } from "../testing/webhook-server.ts";

let api: TestServer;
let hooks: WebhookServer;
let kube: KubeClient;
let over: HttpsConnections;
const { signal } = new AbortController();

beforeAll(async () => {
  [api, hooks] = await Promise.all([serveForTest(), startWebhookServer()]);
  kube = api.server.client();
  over = new HttpsConnections(api.front.url, { ca: api.authority.certificate });
});
afterAll(async () => {
  over.close();
  await api.stop();
  await hooks.stop();
});
beforeEach(async () => {
  for (const kind of ["mutating", "validating"]) {
    await send("DELETE", `${group}/${kind}webhookconfigurations`);
  }
  await send("DELETE", configMaps);
  hooks.answer(allowing);
  hooks.asked.length = 0;
});

const group = "/apis/admissionregistration.k8s.io/v1";
const configMaps = "/api/v1/namespaces/default/configmaps";

async function send(method: string, path: string, body?: object, contentType = "application/json") {
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": contentType };
  const answer = await over.send({ method, path, headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: answer.status, headers: answer.headers, body: JSON.parse(answer.body.toString()) };
}

async function configure(kind: "Mutating" | "Validating", more: object = {}, name = "hook"): Promise<void> {
  const { status, body } = await send("POST", `${group}/${kind.toLowerCase()}webhookconfigurations`, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        clientConfig: { url: `${hooks.url}/${name}`, caBundle: hooks.caBundle },
        rules: [{ operations: ["*"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        ...more,
      },
    ],
  });
  expect([status, body.message]).toEqual([201, undefined]);
}

const configMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: "v1" as const,
  kind: "ConfigMap" as const,
  metadata: { name, namespace: "default" },
  data,
});

const refOf = (name: string) => ({ name, namespace: "default" });

describe("a request that a webhook concerns", () => {
  test("in process is asked about, changed and refused as one over HTTPS", async () => {
    await configure("Mutating");
    hooks.answer(({ object }) =>
      object.metadata.name === "bad"
        ? { response: { allowed: false, status: { message: "not this one", code: 403 } } }
        : patching([{ op: "add", path: "/data/seen", value: "yes" }]),
    );
    const made = await kube.create(resources.configMaps, configMap("good", { a: "b" }), { signal });
    expect(made.data).toEqual({ a: "b", seen: "yes" });
    const refused = await kube.create(resources.configMaps, configMap("bad"), { signal }).catch((e) => e);
    expect(refused).toBeInstanceOf(KubeApiError);
    expect((refused as KubeApiError).status).toMatchObject({
      code: 403,
      message: 'admission webhook "hook.example.com" denied the request: not this one',
    });
    expect(await kube.get(resources.configMaps, refOf("bad"), { signal })).toBeUndefined();
    expect((await send("POST", configMaps, configMap("bad"))).status).toBe(403);
  });

  test("is asked about once, and has one uid, name and time however often it is handled", async () => {
    await configure("Mutating", {}, "first");
    await configure("Validating", {}, "second");
    const { metadata } = (
      await send("POST", configMaps, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { generateName: "g-" },
      })
    ).body;
    expect(hooks.asked.map(({ path }) => path)).toEqual(["/first?timeout=10s", "/second?timeout=10s"]);
    const [first, second] = hooks.asked.map(({ request }) => request.object.metadata);
    expect(first).toMatchObject({ generateName: "g-", namespace: "default" });
    expect(first.name).toBeUndefined();
    expect(second).toMatchObject({ uid: metadata.uid, name: metadata.name });
    expect(metadata.creationTimestamp).toBe(second.creationTimestamp);
  });

  test("is put on what is there when the answers have come: another write in between has it asked again", async () => {
    await send("POST", configMaps, configMap("shared", { a: "1" }));
    await configure("Validating");
    hooks.answer(async ({ object }) => {
      if (object.data.b === "2" && object.data.c === undefined) {
        // The other writer concerns no webhook: it goes past them.
        await send("DELETE", `${group}/validatingwebhookconfigurations/hook`);
        await send("PATCH", `${configMaps}/shared`, { data: { c: "3" } }, "application/merge-patch+json");
        await configure("Validating");
      }
      return allowing();
    });
    const patched = await send(
      "PATCH",
      `${configMaps}/shared`,
      { data: { b: "2" } },
      "application/merge-patch+json",
    );
    expect(patched.body.data).toEqual({ a: "1", b: "2", c: "3" });
    expect(hooks.asked.map(({ request }) => request.object.data)).toEqual([
      { a: "1", b: "2" },
      { a: "1", b: "2", c: "3" },
    ]);
  });

  test("that names the version it builds on is refused when that has changed meanwhile", async () => {
    const { body } = await send("POST", configMaps, configMap("versioned"));
    await configure("Validating");
    hooks.answer(async () => {
      await send("DELETE", `${group}/validatingwebhookconfigurations/hook`);
      await send(
        "PATCH",
        `${configMaps}/versioned`,
        { data: { other: "1" } },
        "application/merge-patch+json",
      );
      return allowing();
    });
    const put = await send("PUT", `${configMaps}/versioned`, { ...body, data: { mine: "1" } });
    expect([put.status, put.body.reason]).toEqual([409, "Conflict"]);
    expect((await send("GET", `${configMaps}/versioned`)).body.data).toEqual({ other: "1" });
  });

  test("holds up no other: neither requests that concern no webhook, nor those of others", async () => {
    await configure("Validating");
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    hooks.answer(async ({ object }) => {
      if (object.metadata.name === "slow") await released;
      return allowing();
    });
    const slow = send("POST", configMaps, configMap("slow"));
    await expect.poll(() => hooks.asked.length).toBe(1);
    expect((await send("GET", "/api/v1/namespaces/default")).status).toBe(200);
    expect((await send("POST", configMaps, configMap("quick"))).status).toBe(201);
    expect((await send("GET", `${configMaps}/slow`)).status).toBe(404);
    release();
    expect((await slow).status).toBe(201);
  });

  test("whose sender has gone away calls no longer, and changes nothing", async () => {
    await configure("Validating");
    hooks.answer(() => "silence");
    const controller = new AbortController();
    const call = kube.create(resources.configMaps, configMap("left"), { signal: controller.signal });
    await expect.poll(() => hooks.asked.length).toBe(1);
    controller.abort(new Error("left"));
    await expect(call).rejects.toThrow("left");
    expect(await kube.get(resources.configMaps, refOf("left"), { signal })).toBeUndefined();
  });

  test("deletes of a collection what no webhook keeps", async () => {
    for (const name of ["a", "b", "kept"]) await send("POST", configMaps, configMap(name));
    await configure("Validating");
    hooks.answer(({ oldObject }) => ({ response: { allowed: oldObject.metadata.name !== "kept" } }));
    const { status, body } = await send("DELETE", configMaps);
    expect([status, body.message]).toEqual([
      400,
      'admission webhook "hook.example.com" denied the request without explanation',
    ]);
    const left = await kube.list(resources.configMaps, { signal, namespace: "default" });
    expect(left.items.map(({ metadata }) => metadata.name)).toEqual(["kept"]);
  });

  test("gets the warnings of a refusal, too", async () => {
    await configure("Validating");
    hooks.answer(() => ({ response: { allowed: false, warnings: ["think again"] } }));
    const { status, headers } = await send("POST", configMaps, configMap("warned"));
    expect([status, headers.warning]).toEqual([400, '299 - "think again"']);
  });

  test("is refused when a dry run may have effects", async () => {
    await configure("Validating", { sideEffects: "NoneOnDryRun" });
    expect((await send("POST", `${configMaps}?dryRun=All`, configMap("dry"))).status).toBe(201);
    expect(hooks.asked[0]?.request.dryRun).toBe(true);
  });
});

describe("conditions", () => {
  const named = (expression: string) => [{ name: "only", expression }];

  test("decide whether a webhook is asked", async () => {
    const expression = 'object.metadata.name.startsWith("asked") && request.operation == "CREATE"';
    await configure("Validating", { matchConditions: named(expression) });
    await send("POST", configMaps, configMap("other"));
    await send("POST", configMaps, configMap("asked-1"));
    expect(hooks.asked.map(({ request }) => request.name)).toEqual(["asked-1"]);
  });

  test("that cannot be evaluated refuse, or are passed over where failures are", async () => {
    await configure("Validating", { matchConditions: named("object.data.missing == 'a'") });
    const { status, body } = await send("POST", configMaps, configMap("a"));
    expect([status, body.message]).toEqual([
      403,
      expect.stringMatching(/^configmaps "a" is forbidden: match condition "only": /),
    ]);
    await send("DELETE", `${group}/validatingwebhookconfigurations/hook`);
    await configure("Validating", {
      matchConditions: named("object.data.missing == 'a'"),
      failurePolicy: "Ignore",
    });
    expect((await send("POST", configMaps, configMap("a"))).status).toBe(201);
    expect(hooks.asked).toEqual([]);
  });

  test("that are no expressions are refused with the configuration", async () => {
    const configuration = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: "wrong" },
      webhooks: [
        {
          name: "a.example.com",
          clientConfig: { url: "https://a" },
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          matchConditions: [...named("object."), ...named("unknown.a")],
        },
      ],
    };
    const { body } = await send("POST", `${group}/validatingwebhookconfigurations`, configuration);
    const causes = body.details.causes as { field: string; message: string }[];
    expect(causes.map(({ field }) => field)).toEqual([
      "webhooks[0].matchConditions[0].expression",
      "webhooks[0].matchConditions[1].expression",
      "webhooks[0].matchConditions[1].name",
    ]);
  });
});

describe("a webhook behind a Service", () => {
  const service = { name: "hooks", namespace: "default", path: "/by-service", port: 443 };

  test("is called at an endpoint of the Service, under the Service's name", async () => {
    const ofService = await startWebhookServer(["hooks.default.svc"]);
    const object = (kind: string, more: object): KubeObject =>
      ({ apiVersion: "v1", kind, metadata: { name: "hooks", namespace: "default" }, ...more }) as KubeObject;
    try {
      const clientConfig = { service, caBundle: ofService.caBundle };
      await configure("Validating", { clientConfig });
      const said = async () => (await send("POST", `${configMaps}?dryRun=All`, configMap("a"))).body.message;
      const failed = (why: string) =>
        `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hooks.default.svc:443/by-service?timeout=10s": ${why}`;
      expect(await said()).toBe(failed('service "hooks" not found'));
      const ports = [{ name: "https", port: 443, targetPort: ofService.port }];
      await send("POST", "/api/v1/namespaces/default/services", object("Service", { spec: { ports } }));
      expect(await said()).toBe(failed('no endpoints available for service "hooks"'));
      const subsets = [
        { addresses: [{ ip: "127.0.0.1" }], ports: [{ name: "https", port: ofService.port }] },
      ];
      // The reference refuses loopback addresses of Endpoints, and so does this server.
      const { store } = api.server.registry.context;
      store.commit([
        {
          resource: "endpoints",
          namespace: "default",
          name: "hooks",
          object: object("Endpoints", { subsets }),
        },
      ]);
      expect(await said()).toBeUndefined();
      expect(ofService.asked.map(({ path }) => path)).toEqual(["/by-service?timeout=10s"]);
    } finally {
      await ofService.stop();
    }
  });
});

test("certificates are checked, whatever the environment says", async () => {
  const other = await startWebhookServer();
  // Node warns of the variable, once in a process: it is set on purpose.
  const warnings = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    await configure("Validating", { clientConfig: { url: hooks.url, caBundle: other.caBundle } });
    const { status, body } = await send("POST", configMaps, configMap("a"));
    expect([status, body.message]).toEqual([500, expect.stringContaining("x509: certificate signed by")]);
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    await other.stop();
    const texts = warnings.mock.calls.map(([warning]) => String(warning));
    warnings.mockRestore();
    expect(texts.filter((text) => !text.includes("NODE_TLS_REJECT_UNAUTHORIZED"))).toEqual([]);
  }
});
