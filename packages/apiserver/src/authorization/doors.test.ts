/** The other ways to an object, and effects that need a separate right. */
import { describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { asker } from "../testing/ask.ts";
import { fakeExchange } from "../testing/fake-exchange.ts";
import { rightsOf } from "../testing/rights.ts";
import { aServer } from "../testing/world.ts";

const pod = (name: string, more: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i" }], ...more },
});
const rbac = "apis/rbac.authorization.k8s.io/v1";
const leases = "apis/coordination.k8s.io/v1/namespaces/default/leases";

function aWorld() {
  const { server, store, env } = aServer();
  const admin = asker(server, adminUser);
  const rights = rightsOf(server.registry.context);
  const as = (name: string) => asker(server, { name, groups: [] });
  return { server, store, env, admin, rights, as, send: fakeExchange(env, server) };
}

describe("a field selector", () => {
  const tricky = "metadata.namespace!=x\\,metadata.name=a";

  it.each(["list", "watch"] as const)(
    "that only looks as if it chose one name allows no %s of all",
    (verb) => {
      const { admin, rights, as } = aWorld();
      admin.ask("create", "api/v1/namespaces/default/secrets", { metadata: { name: "b" } });
      const right = { verb, group: "", resource: "secrets", namespace: "default", name: "a" };
      const jane = as(rights.only(right));
      const path = "api/v1/namespaces/default/secrets";
      expect(jane.outcome(verb, path, undefined, { query: { fieldSelector: tricky } })).toContain("403");
      expect(jane.outcome(verb, path, undefined, { query: { fieldSelector: "metadata.name=a" } })).toBe("ok");
      expect(jane.outcome(verb, path, undefined, { query: { fieldSelector: "metadata.name=b" } })).toContain(
        "403",
      );
      expect(jane.outcome(verb, path, undefined, { query: { fieldSelector: "metadata.name!=a" } })).toContain(
        "403",
      );
    },
  );

  it("that only looks as if it chose a node's own pods shows it no others", () => {
    const { server } = aWorld();
    const node = asker(server, { name: "system:node:n", groups: ["system:nodes"] });
    const list = (fieldSelector: string) =>
      node.outcome("list", "api/v1/pods", undefined, { query: { fieldSelector } });
    expect(list("spec.nodeName=n")).toBe("ok");
    expect(list("metadata.namespace!=x\\,spec.nodeName=n")).toContain("403");
    expect(list("spec.nodeName!=n")).toContain("403");
  });

  it("makes no deletion of many one of a name", () => {
    const { rights, as } = aWorld();
    const right = { verb: "deletecollection", group: "", resource: "pods", namespace: "default", name: "a" };
    const query = { fieldSelector: "metadata.name=a" };
    const jane = as(rights.only(right));
    expect(
      jane.outcome("deletecollection", "api/v1/namespaces/default/pods", undefined, { query }),
    ).toContain("403");
  });
});

describe("a kind", () => {
  it.each([
    ["api/v1/clusterroles.rbac.authorization.k8s.io/view", "", "clusterroles.rbac.authorization.k8s.io"],
    ["apis/authorization.k8s.io/v1/clusterroles.rbac/view", "authorization.k8s.io", "clusterroles.rbac"],
  ])("is not found in another group: %s", (path, group, resource) => {
    const { rights, as } = aWorld();
    const jane = as(rights.only({ verb: "get", group, resource }));
    expect(jane.outcome("get", path)).toContain("404");
  });

  it("of the cluster is not served in a namespace to clients in process either", () => {
    const { rights, as } = aWorld();
    const jane = as(rights.only({ verb: "create", group: "", resource: "nodes", namespace: "default" }));
    expect(jane.outcome("create", "api/v1/namespaces/default/nodes", { metadata: { name: "n" } })).toContain(
      "404",
    );
  });
});

describe("what is not there yet", () => {
  const lease = { metadata: { name: "l" }, spec: { holderIdentity: "x" } };
  const of = { group: "coordination.k8s.io", resource: "leases", namespace: "default" };

  it("takes the right to create it from who updates it into being", () => {
    const { admin, rights, as } = aWorld();
    const jane = as(rights.only({ verb: "update", ...of }));
    expect(jane.outcome("update", `${leases}/l`, lease)).toContain('cannot create resource "leases"');
    const { metadata } = admin.ask("create", leases, lease);
    expect(jane.outcome("update", `${leases}/l`, { ...lease, metadata })).toBe("ok");
  });

  it.each([true, false])("takes it from who applies it, over the wire: %s", (fromWire) => {
    const { rights, as } = aWorld();
    const jane = as(rights.only({ verb: "patch", ...of }));
    const applied = { ...lease, apiVersion: "coordination.k8s.io/v1", kind: "Lease" };
    const rest = { patchType: "apply", query: { fieldManager: "m" }, fromWire } as const;
    expect(jane.outcome("patch", `${leases}/l`, applied, rest)).toContain('cannot create resource "leases"');
  });
});

describe("a part of a pod", () => {
  it.each([
    ["ephemeralcontainers", { ephemeralContainers: [{ name: "e", image: "i" }] }],
    ["resize", { containers: [{ name: "c", image: "i" }] }],
  ])("%s changes nothing of the pod's metadata", (part, spec) => {
    const { store, admin, rights, as } = aWorld();
    const right = { verb: "patch", group: "", resource: `pods/${part}`, namespace: "default" };
    admin.ask("create", "api/v1/namespaces/default/pods", pod("p"));
    const body = { metadata: { labels: { a: "b" }, finalizers: ["x.example.com/f"] }, spec };
    const path = `api/v1/namespaces/default/pods/p/${part}`;
    expect(as(rights.only(right)).outcome("patch", path, body, { patchType: "strategic" })).toBe("ok");
    const { labels, finalizers } = store.table("pods").get("default", "p")?.metadata ?? {};
    expect([labels, finalizers]).toEqual([undefined, undefined]);
  });
});

describe("a dry run", () => {
  const dry = { query: { dryRun: ["All"] } };
  it.each([
    [
      "of a namespace's finalizers",
      "update",
      "namespaces/team",
      { metadata: { name: "team" } },
      { ...dry, subresource: "finalize" },
    ],
    [
      "named in the options of a deletion of many",
      "deletecollection",
      "namespaces/default/pods",
      { dryRun: ["All"] },
      {},
    ],
    [
      "named in an eviction",
      "create",
      "namespaces/default/pods/p/eviction",
      { deleteOptions: { dryRun: ["All"] } },
      {},
    ],
    ["of a binding", "create", "namespaces/default/pods/p/binding", { target: { name: "n" } }, dry],
  ] as const)("%s changes nothing", (_name, verb, path, body, rest) => {
    const { store, admin } = aWorld();
    admin.ask("create", "api/v1/namespaces", { metadata: { name: "team" } });
    admin.ask("create", "api/v1/namespaces/default/pods", pod("p"));
    const { revision } = store;
    expect(admin.outcome(verb, `api/v1/${path}`, body, rest)).toBe("ok");
    expect(store.revision).toBe(revision);
  });
});

it("an eviction that is a dry run by its options takes nothing from a budget", () => {
  const { store, admin } = aWorld();
  const labels = { app: "a" };
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  const inDefault = { namespace: "default" };
  const running = {
    kind: "Pod",
    apiVersion: "v1",
    ...pod("p"),
    metadata: { name: "p", labels, ...inDefault },
    status,
  };
  const budget = {
    kind: "PodDisruptionBudget",
    apiVersion: "policy/v1",
    metadata: { name: "b", ...inDefault },
    spec: { minAvailable: 0, selector: { matchLabels: labels } },
    status: { disruptionsAllowed: 1, currentHealthy: 1, desiredHealthy: 0, expectedPods: 1 },
  };
  store.commit([{ resource: "pods", ...inDefault, name: "p", object: running }]);
  store.commit([{ resource: "poddisruptionbudgets.policy", ...inDefault, name: "b", object: budget }]);
  const { revision } = store;
  const evict = (body: object) => admin.outcome("create", "api/v1/namespaces/default/pods/p/eviction", body);
  expect(evict({ deleteOptions: { dryRun: ["All"] } })).toBe("ok");
  expect(store.revision).toBe(revision);
  expect(evict({})).toBe("ok");
  expect(store.table("pods").get("default", "p")).toBeUndefined();
});

describe("a sub-resource with a separate type", () => {
  it.each([
    ["update", "deployments/d/scale", "Deployment"],
    ["create", "pods/p/binding", "Pod"],
    ["create", "pods/p/eviction", "Pod"],
    ["create", "serviceaccounts/x/token", "ServiceAccount"],
  ] as const)("takes no object of another kind: %s %s", (verb, path, kind) => {
    const { store, admin } = aWorld();
    const deployment = {
      metadata: { name: "d" },
      spec: {
        replicas: 3,
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      },
    };
    admin.ask("create", "apis/apps/v1/namespaces/default/deployments", deployment);
    admin.ask("create", "api/v1/namespaces/default/pods", pod("p"));
    admin.ask("create", "api/v1/namespaces/default/serviceaccounts", { metadata: { name: "x" } });
    const { revision } = store;
    const root = path.startsWith("deployments") ? "apis/apps/v1" : "api/v1";
    const body = { kind, metadata: { name: path.split("/")[1] }, target: { name: "n" } };
    expect(admin.outcome(verb, `${root}/namespaces/default/${path}`, body)).toContain("400");
    expect(store.revision).toBe(revision);
  });
});

describe("a namespace", () => {
  it.each(["default", "kube-system", "kube-public"])("%s may not be deleted", (name) => {
    const { admin } = aWorld();
    expect(admin.outcome("delete", `api/v1/namespaces/${name}`)).toBe(
      `403 namespaces "${name}" is forbidden: this namespace may not be deleted`,
    );
    expect(admin.outcome("get", `api/v1/namespaces/${name}`)).toBe("ok");
  });

  it("of another name may, kube-node-lease too; all together may not", () => {
    const { admin } = aWorld();
    expect(admin.outcome("delete", "api/v1/namespaces/kube-node-lease")).toBe("ok");
    expect(admin.outcome("deletecollection", "api/v1/namespaces")).toContain("405");
  });

  it("that goes takes nothing new, bindings, evictions and tokens neither, and lets the rest be changed and deleted", () => {
    const { admin } = aWorld();
    admin.ask("create", "api/v1/namespaces", { metadata: { name: "team" } });
    const inTeam = "api/v1/namespaces/team";
    for (const name of ["p", "q"]) admin.ask("create", `${inTeam}/pods`, pod(name));
    admin.ask("create", `${inTeam}/serviceaccounts`, { metadata: { name: "x" } });
    admin.ask("delete", inTeam);
    const why = "unable to create new content in namespace team because it is being terminated";
    expect(admin.outcome("create", `${inTeam}/pods`, pod("r"))).toBe(`403 pods "r" is forbidden: ${why}`);
    expect(admin.outcome("create", `${inTeam}/pods/p/binding`, { target: { name: "n" } })).toBe(
      `403 pods "p" is forbidden: ${why}`,
    );
    expect(admin.outcome("create", `${inTeam}/pods/p/eviction`, {})).toContain(why);
    expect(admin.outcome("create", `${inTeam}/serviceaccounts/x/token`, {})).toContain(why);
    const labels = { metadata: { labels: { a: "b" } } };
    expect(admin.outcome("patch", `${inTeam}/pods/p`, labels, { patchType: "merge" })).toBe("ok");
    expect(admin.outcome("delete", `${inTeam}/pods/p`)).toBe("ok");
    expect(admin.outcome("deletecollection", `${inTeam}/pods`)).toBe("ok");
    const review = {
      spec: { user: "jane", resourceAttributes: { verb: "get", resource: "pods", namespace: "gone" } },
    };
    const reviews = "apis/authorization.k8s.io/v1/namespaces/gone/localsubjectaccessreviews";
    expect(admin.outcome("create", reviews, review)).toBe("ok");
  });
});

describe("a path that is no resource", () => {
  const put = (world: ReturnType<typeof aWorld>, rules: readonly object[]) => {
    const { admin } = world;
    admin.ask("create", `${rbac}/clusterroles`, { metadata: { name: "r" }, rules });
    admin.ask("create", `${rbac}/clusterrolebindings`, {
      metadata: { name: "r" },
      roleRef: { kind: "ClusterRole", name: "r" },
      subjects: [{ kind: "User", name: "jane" }],
    });
  };

  it.each([
    ["/compact/", 404],
    ["/compact", 403],
    ["/compact/x/..", 404],
    ["/compact/..", 404],
    ["/%63ompact/", 404],
    ["//compact", 403],
  ])("is the one that leave is asked for: POST %s", async (path, status) => {
    const world = aWorld();
    put(world, [{ verbs: ["post"], nonResourceURLs: ["/compact/*"] }]);
    const { server, env } = world;
    const send = fakeExchange(env, {
      ...serverParts(server),
      authenticate: () => ({ name: "jane", groups: [] }),
    } as never);
    expect((await send("POST", path, {})).status).toBe(status);
  });
});

/** A server with another authenticator. */
const serverParts = (server: ReturnType<typeof aServer>["server"]) => ({
  registry: server.registry,
  authorizer: server.authorizer,
  accounts: server.accounts,
  running: true,
});
