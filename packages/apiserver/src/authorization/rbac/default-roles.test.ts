import { describe, expect, it } from "vitest";
import { adminUser } from "../../api/api-request.ts";
import { createApiServer } from "../../api-server.ts";
import { memoryStore } from "../../storage/object-store.ts";
import { asker } from "../../testing/ask.ts";
import { aServer } from "../../testing/world.ts";
import { parseRule } from "./default-roles.ts";
import { type BindingObject, type RoleObject, rbacGroup } from "./policy-rule.ts";

const rbac = `apis/${rbacGroup}/v1`;
const { env } = aServer();
const roleOf = (store: ReturnType<typeof memoryStore>, name: string) =>
  store.table(`clusterroles.${rbacGroup}`).get("", name) as RoleObject | undefined;

describe("a line of the table", () => {
  it.each([
    ["read pods", { verbs: ["get", "list", "watch"], apiGroups: [""], resources: ["pods"] }],
    [
      "get,update leases in coordination.k8s.io named a,b",
      {
        verbs: ["get", "update"],
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        resourceNames: ["a", "b"],
      },
    ],
    [
      "create events in core,events.k8s.io",
      { verbs: ["create"], apiGroups: ["", "events.k8s.io"], resources: ["events"] },
    ],
    ["get /api,/api/*", { verbs: ["get"], nonResourceURLs: ["/api", "/api/*"] }],
    ["* *", { verbs: ["*"], nonResourceURLs: ["*"] }],
    ["* * in *", { verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  ])("%s", (line, rule) => {
    expect(parseRule(line)).toEqual(rule);
  });
});

describe("the default roles", () => {
  it("are there from the start, each bound to a role that is there", () => {
    const store = memoryStore();
    createApiServer(env, { store, emulatedVersion: "1.20" });
    const names = (table: string) =>
      store
        .table(`${table}.${rbacGroup}`)
        .list()
        .map((o) => o.metadata.name);
    // As many as kube-apiserver 1.20.2 makes.
    expect(names("clusterroles")).toHaveLength(60);
    expect(names("clusterrolebindings")).toHaveLength(41);
    expect(names("roles")).toHaveLength(7);
    expect(names("rolebindings")).toHaveLength(7);
    for (const binding of store.table(`clusterrolebindings.${rbacGroup}`).list()) {
      expect(names("clusterroles")).toContain((binding as unknown as BindingObject).roleRef.name);
    }
  });

  it("differ between versions where the releases do", () => {
    const rulesIn = (emulatedVersion: string) => {
      const store = memoryStore();
      createApiServer(env, { store, emulatedVersion });
      return JSON.stringify(roleOf(store, "system:basic-user")?.rules);
    };
    expect(rulesIn("1.20")).not.toContain("selfsubjectreviews");
    expect(rulesIn("1.36")).toContain("selfsubjectreviews");
  });

  it("are put right at the next start, and what was added to them stays", () => {
    const store = memoryStore();
    const { ask } = asker(createApiServer(env, { store }), adminUser);
    const extra = { verbs: ["get"], apiGroups: ["example.com"], resources: ["things"] };
    const path = `${rbac}/clusterroles/system:basic-user`;
    ask("update", path, { metadata: { name: "system:basic-user" }, rules: [extra] });
    ask("delete", `${rbac}/clusterrolebindings/system:discovery`);
    createApiServer(env, { store });
    expect(roleOf(store, "system:basic-user")?.rules).toContainEqual(extra);
    expect(JSON.stringify(roleOf(store, "system:basic-user")?.rules)).toContain("selfsubjectaccessreviews");
    expect(store.table(`clusterrolebindings.${rbacGroup}`).get("", "system:discovery")).toBeDefined();
  });

  it("are left alone where they say so, and a second start changes nothing", () => {
    const store = memoryStore();
    const { ask } = asker(createApiServer(env, { store }), adminUser);
    const metadata = {
      name: "system:basic-user",
      annotations: { "rbac.authorization.kubernetes.io/autoupdate": "false" },
    };
    ask("update", `${rbac}/clusterroles/system:basic-user`, { metadata, rules: [] });
    const { revision } = store;
    createApiServer(env, { store });
    expect(roleOf(store, "system:basic-user")?.rules).toEqual([]);
    expect(store.revision).toBe(revision);
  });
});

describe("aggregated roles", () => {
  it("have the rules of those that they take in, through each other", () => {
    const store = memoryStore();
    createApiServer(env, { store });
    const rules = (name: string) => JSON.stringify(roleOf(store, name)?.rules);
    expect(rules("view")).toContain('"configmaps"');
    expect(rules("view")).not.toContain('"secrets"');
    expect(rules("edit")).toContain('"secrets"');
    expect(rules("edit")).not.toContain('"rolebindings"');
    expect(rules("admin")).toContain('"rolebindings"');
    expect(rules("admin")).toContain('"pods/log"');
  });

  it("take in what is labelled later", async () => {
    const { clock, env: ownEnv } = aServer();
    const store = memoryStore();
    const server = createApiServer(ownEnv, { store });
    await server.start();
    const { ask } = asker(server, adminUser);
    const rule = { verbs: ["get"], apiGroups: ["example.com"], resources: ["things"] };
    const labels = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
    ask("create", `${rbac}/clusterroles`, { metadata: { name: "things", labels }, rules: [rule] });
    await clock.advance(1000);
    for (const name of ["view", "edit", "admin"]) expect(roleOf(store, name)?.rules).toContainEqual(rule);
    ask("delete", `${rbac}/clusterroles/things`);
    await clock.advance(1000);
    expect(roleOf(store, "view")?.rules).not.toContainEqual(rule);
    await server.stop();
  });
});
