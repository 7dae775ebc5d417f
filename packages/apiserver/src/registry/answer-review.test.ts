import { describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { createApiServer } from "../api-server.ts";
import { memoryStore } from "../storage/object-store.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";

const jane = { name: "jane", groups: ["devs", "system:authenticated"], extra: { scope: ["a"] } };
const authorization = "apis/authorization.k8s.io/v1";
const authentication = "apis/authentication.k8s.io/v1";
const { env } = aServer();

function aWorld(emulatedVersion = "1.36") {
  const tokens = [{ token: "janes", user: { name: "jane", uid: "u", groups: ["devs"] } }];
  const server = createApiServer(env, { store: memoryStore(), emulatedVersion, tokens });
  const admin = asker(server, adminUser);
  admin.ask("create", "apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {
    metadata: { name: "r" },
    rules: [{ apiGroups: [""], resources: ["pods"], resourceNames: ["a"], verbs: ["get"] }],
  });
  admin.ask("create", "apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
    metadata: { name: "b" },
    roleRef: { kind: "Role", name: "r" },
    subjects: [{ kind: "Group", name: "devs" }],
  });
  return { server, admin, jane: asker(server, jane) };
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into reviews of every kind.
const statusOf = (review: unknown) => (review as any).status;
const pod = (name: string) => ({ verb: "get", resource: "pods", namespace: "default", name });

describe("a review of access", () => {
  it("of oneself says what is allowed, and why", () => {
    const { jane } = aWorld();
    const review = (spec: object) =>
      statusOf(jane.ask("create", `${authorization}/selfsubjectaccessreviews`, { spec }));
    expect(review({ resourceAttributes: pod("a") })).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "b/default" of Role "r" to Group "devs"',
    });
    expect(review({ resourceAttributes: pod("b") })).toEqual({ allowed: false });
    expect(review({ nonResourceAttributes: { path: "/metrics", verb: "get" } })).toEqual({ allowed: false });
    expect(review({ nonResourceAttributes: { path: "/version", verb: "get" } }).allowed).toBe(true);
  });

  it("of another needs leave, and names a user or a group", () => {
    const { admin, jane } = aWorld();
    const path = `${authorization}/subjectaccessreviews`;
    const of = (spec: object) => ({ spec: { resourceAttributes: pod("a"), ...spec } });
    expect(jane.outcome("create", path, of({ user: "jane" }))).toContain("403");
    expect(statusOf(admin.ask("create", path, of({ user: "jane" }))).allowed).toBe(false);
    expect(statusOf(admin.ask("create", path, of({ groups: ["devs"] }))).allowed).toBe(true);
    expect(statusOf(admin.ask("create", path, of({ user: "x", groups: ["system:masters"] }))).allowed).toBe(
      true,
    );
    expect(admin.outcome("create", path, of({}))).toContain(
      "at least one of user or group must be specified",
    );
    expect(admin.outcome("create", path, { metadata: { name: "x" }, ...of({ user: "x" }) })).toContain(
      "must be empty",
    );
    expect(admin.outcome("create", path, { spec: { user: "x" } })).toContain("exactly one of");
    const both = of({ user: "x", nonResourceAttributes: { path: "/", verb: "get" } });
    expect(admin.outcome("create", path, both)).toContain("cannot be specified in combination");
  });

  it("in a namespace asks about that namespace", () => {
    const { admin } = aWorld();
    const path = `${authorization}/namespaces/default/localsubjectaccessreviews`;
    const of = (namespace: string) => ({
      spec: { groups: ["devs"], resourceAttributes: { ...pod("a"), namespace } },
    });
    expect(statusOf(admin.ask("create", path, of("default"))).allowed).toBe(true);
    expect(admin.outcome("create", path, of("other"))).toContain("must match metadata.namespace");
  });

  it("has its groups in `group` in v1beta1", () => {
    const { admin } = aWorld("1.20");
    const beta = "apis/authorization.k8s.io/v1beta1";
    const resourceAttributes = pod("a");
    for (const path of [
      `${beta}/subjectaccessreviews`,
      `${beta}/namespaces/default/localsubjectaccessreviews`,
    ]) {
      const review = (spec: object) => admin.ask("create", path, { spec: { resourceAttributes, ...spec } });
      expect(review({ group: ["devs"] })).toMatchObject({
        apiVersion: "authorization.k8s.io/v1beta1",
        spec: { group: ["devs"] },
        status: { allowed: true },
      });
      const other = review({ user: "x", groups: ["devs"] });
      expect(statusOf(other).allowed).toBe(false);
      expect(other).not.toHaveProperty("spec.groups");
    }
  });

  it("of rules lists what applies", () => {
    const { jane } = aWorld();
    const path = `${authorization}/selfsubjectrulesreviews`;
    const status = statusOf(jane.ask("create", path, { spec: { namespace: "default" } }));
    expect(status.incomplete).toBe(false);
    expect(status.resourceRules).toContainEqual({
      verbs: ["get"],
      apiGroups: [""],
      resources: ["pods"],
      resourceNames: ["a"],
    });
    expect(JSON.stringify(status.nonResourceRules)).toContain("/openapi/*");
    expect(jane.outcome("create", path, { spec: {} })).toBe("400 no namespace on request");
  });

  it("is stored nowhere", () => {
    const { server, jane } = aWorld();
    const { revision } = server.registry.context.store;
    const path = `${authorization}/selfsubjectaccessreviews`;
    jane.ask("create", path, { spec: { resourceAttributes: pod("a") } });
    expect(server.registry.context.store.revision).toBe(revision);
    expect(asker(server, adminUser).outcome("list", path)).toContain("405");
  });
});

describe("a review of a token", () => {
  it("says who holds it, for the audiences that are asked for", () => {
    const { admin, server } = aWorld();
    const review = (spec: object) =>
      statusOf(admin.ask("create", `${authentication}/tokenreviews`, { spec }));
    const audiences = [server.accounts.issuer];
    expect(review({ token: "janes" })).toEqual({
      authenticated: true,
      user: { username: "jane", uid: "u", groups: ["devs", "system:authenticated"] },
      audiences,
    });
    expect(review({ token: "janes", audiences: ["x"] })).toEqual({ user: {}, error: "invalid bearer token" });
    expect(review({ token: "jane" })).toEqual({ user: {}, error: "invalid bearer token" });
  });
});

describe("a SelfSubjectReview", () => {
  it("is answered from 1.28 on", () => {
    const path = `${authentication}/selfsubjectreviews`;
    expect(statusOf(aWorld().jane.ask("create", path, {}))).toEqual({
      userInfo: { username: "jane", groups: jane.groups, extra: jane.extra },
    });
    expect(aWorld("1.27").jane.outcome("create", path, {})).toMatch(/^40[34]/);
  });
});
