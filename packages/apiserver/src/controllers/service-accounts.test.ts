import type { KubeObject } from "@longshore/kube";
import { describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind.
type Any = any;

async function aCluster(emulatedVersion: string) {
  const { env, clock } = aServer();
  const server = createApiServer(env, {
    store: memoryStore(),
    emulatedVersion,
    serviceAccounts: true,
    rootCa: "CERT",
  });
  await server.start();
  await clock.advance(1000);
  const admin = asker(server, adminUser);
  const table = (name: string, namespace: string) =>
    server.registry.context.store.table(name).list(namespace) as readonly Any[];
  return { server, clock, admin, table };
}

const inTeam = "api/v1/namespaces/team";
const podOf = (spec: object = {}) => ({
  metadata: { name: "p" },
  spec: { containers: [{ name: "c", image: "i" }], ...spec },
});

describe("a namespace", () => {
  it("gets a service account and the cluster's authority, and gets them back", async () => {
    const { server, clock, admin, table } = await aCluster("1.36");
    admin.ask("create", "api/v1/namespaces", { metadata: { name: "team" } });
    await clock.advance(1000);
    expect(table("serviceaccounts", "team").map((a) => a.metadata.name)).toEqual(["default"]);
    expect(table("configmaps", "team").map((c) => c.data)).toEqual([{ "ca.crt": "CERT" }]);
    expect(table("secrets", "team")).toEqual([]);
    admin.ask("delete", `${inTeam}/serviceaccounts/default`);
    const changed = { metadata: { name: "kube-root-ca.crt" }, data: { "ca.crt": "other" } };
    admin.ask("update", `${inTeam}/configmaps/kube-root-ca.crt`, changed);
    await clock.advance(1000);
    expect(table("serviceaccounts", "team")).toHaveLength(1);
    expect(table("configmaps", "team")[0].data).toEqual({ "ca.crt": "CERT" });
    await server.stop();
  });

  it("that is being deleted gets nothing more, and goes", async () => {
    const { server, clock, admin } = await aCluster("1.36");
    admin.ask("create", "api/v1/namespaces", { metadata: { name: "team" } });
    await clock.advance(1000);
    admin.ask("delete", "api/v1/namespaces/team");
    await clock.advance(5000);
    expect(admin.outcome("get", "api/v1/namespaces/team")).toContain("404");
    await server.stop();
  });
});

describe("a pod", () => {
  it("finds a token in a projected volume", async () => {
    const { server, admin } = await aCluster("1.36");
    const { spec } = admin.ask("create", "api/v1/namespaces/default/pods", podOf()) as Any;
    const [volume] = spec.volumes;
    expect(spec.serviceAccountName).toBe("default");
    expect(volume.name).toMatch(/^kube-api-access-.{5}$/);
    expect(volume.projected.sources).toEqual([
      { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      {
        downwardAPI: {
          items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
        },
      },
    ]);
    expect(spec.containers[0].volumeMounts).toEqual([
      { name: volume.name, readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" },
    ]);
    await server.stop();
  });

  it("finds it in a Secret before 1.21", async () => {
    const { server, admin, table } = await aCluster("1.20");
    const [secret] = table("secrets", "default");
    const { spec } = admin.ask("create", "api/v1/namespaces/default/pods", podOf()) as Any;
    expect(spec.volumes).toEqual([
      { name: secret.metadata.name, secret: { secretName: secret.metadata.name, defaultMode: 420 } },
    ]);
    await server.stop();
  });

  it.each([
    ["it says so", { automountServiceAccountToken: false }, {}],
    ["its account says so", {}, { automountServiceAccountToken: false }],
  ])("gets none when %s", async (_name, spec, account) => {
    const { server, admin } = await aCluster("1.36");
    const bot = { metadata: { name: "bot" }, imagePullSecrets: [{ name: "pull" }], ...account };
    admin.ask("create", "api/v1/namespaces/default/serviceaccounts", bot);
    const pod = podOf({ serviceAccountName: "bot", ...spec });
    const made = admin.ask("create", "api/v1/namespaces/default/pods", pod) as Any;
    expect(made.spec.volumes ?? []).toEqual([]);
    expect(made.spec.imagePullSecrets).toEqual([{ name: "pull" }]);
    await server.stop();
  });

  it("of an account that is not there is refused", async () => {
    const { server, admin } = await aCluster("1.36");
    const outcome = admin.outcome(
      "create",
      "api/v1/namespaces/default/pods",
      podOf({ serviceAccountName: "x" }),
    );
    expect(outcome).toBe(
      '403 pods "p" is forbidden: error looking up service account default/x: serviceaccount "x" not found',
    );
    await server.stop();
  });
});

describe("a Secret of a service account", () => {
  const secretOf = (account: string): KubeObject =>
    ({
      metadata: { name: "tok", annotations: { "kubernetes.io/service-account.name": account } },
      type: "kubernetes.io/service-account-token",
    }) as KubeObject;

  it.each(["1.20", "1.36"])("is filled with a token that works, until it is gone (%s)", async (version) => {
    const { server, clock, admin } = await aCluster(version);
    admin.ask("create", "api/v1/namespaces/default/secrets", secretOf("default"));
    await clock.advance(1000);
    const { data } = admin.ask("get", "api/v1/namespaces/default/secrets/tok") as Any;
    const plain = (key: string) => Buffer.from(data[key], "base64").toString();
    expect([plain("namespace"), plain("ca.crt")]).toEqual(["default", "CERT"]);
    const credentials = { authorization: `Bearer ${plain("token")}`, certificate: undefined };
    expect(server.authenticate(credentials).name).toBe("system:serviceaccount:default:default");
    admin.ask("delete", "api/v1/namespaces/default/secrets/tok");
    expect(() => server.authenticate(credentials)).toThrow(expect.objectContaining({ code: 401 }));
    await server.stop();
  });

  it("goes when its account does", async () => {
    const { server, clock, admin, table } = await aCluster("1.36");
    admin.ask("create", "api/v1/namespaces/default/serviceaccounts", { metadata: { name: "bot" } });
    admin.ask("create", "api/v1/namespaces/default/secrets", secretOf("bot"));
    await clock.advance(1000);
    admin.ask("delete", "api/v1/namespaces/default/serviceaccounts/bot");
    await clock.advance(1000);
    expect(table("secrets", "default")).toEqual([]);
    await server.stop();
  });
});
