import { describe, expect, it } from "vitest";
import { adminUser } from "../api/api-request.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";

const jane = { name: "jane", groups: ["devs", "system:authenticated"] };
const rbac = "apis/rbac.authorization.k8s.io/v1";
const manager = {
  apiGroups: ["rbac.authorization.k8s.io"],
  resources: ["*"],
  verbs: ["get", "create", "update"],
};
const readPods = { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] };

/** A server on which jane may write roles and bindings, and may do what `rules` say. */
function withRules(...rules: object[]) {
  const { server } = aServer();
  const admin = asker(server, adminUser);
  admin.ask("create", `${rbac}/clusterroles`, { metadata: { name: "janes" }, rules: [manager, ...rules] });
  admin.ask("create", `${rbac}/clusterrolebindings`, {
    metadata: { name: "janes" },
    roleRef: { kind: "ClusterRole", name: "janes" },
    subjects: [{ kind: "User", name: "jane" }],
  });
  return { admin, jane: asker(server, jane) };
}

const role = (name: string, ...rules: object[]) => ({ metadata: { name }, rules });
const binding = (name: string, of: string, kind = "ClusterRole") => ({
  metadata: { name },
  roleRef: { kind, name: of },
  subjects: [{ kind: "User", name: "jane" }],
});

describe("who writes a role", () => {
  it("may give what they hold", () => {
    expect(withRules(readPods).jane.outcome("create", `${rbac}/clusterroles`, role("r", readPods))).toBe(
      "ok",
    );
  });

  it("may not grant rights that they lack; the error names the missing rights", () => {
    const { jane } = withRules();
    expect(jane.outcome("create", `${rbac}/clusterroles`, role("r", readPods))).toBe(
      '403 clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
    );
  });

  it("may not add to a role what they lack, nor bring one in by updating it into being", () => {
    const { admin, jane } = withRules();
    admin.ask("create", `${rbac}/clusterroles`, role("r"));
    expect(jane.outcome("update", `${rbac}/clusterroles/r`, role("r", readPods))).toContain("403");
    expect(jane.outcome("update", `${rbac}/clusterroles/new`, role("new", readPods))).toContain("403");
  });

  it("may change what else there is in a role that gives more than they hold", () => {
    const { admin, jane } = withRules();
    admin.ask("create", `${rbac}/clusterroles`, role("r", readPods));
    const labelled = { metadata: { name: "r", labels: { a: "b" } }, rules: [readPods] };
    expect(jane.outcome("update", `${rbac}/clusterroles/r`, labelled)).toBe("ok");
  });

  it("may give anything when allowed to escalate", () => {
    const { jane } = withRules({ ...manager, verbs: ["escalate"], resources: ["clusterroles"] });
    expect(jane.outcome("create", `${rbac}/clusterroles`, role("r", readPods))).toBe("ok");
  });

  it("may aggregate only with all rights", () => {
    const { jane, admin } = withRules(readPods);
    const rule = { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] };
    const aggregated = { metadata: { name: "agg" }, aggregationRule: rule };
    expect(jane.outcome("create", `${rbac}/clusterroles`, aggregated)).toContain(
      "must have cluster-admin privileges to use the aggregationRule",
    );
    expect(admin.outcome("create", `${rbac}/clusterroles`, aggregated)).toBe("ok");
  });

  it("holds in a namespace what is bound there, and can give it there only", () => {
    const { admin, jane } = withRules();
    admin.ask("create", `${rbac}/namespaces/default/roles`, role("pods", readPods));
    admin.ask("create", `${rbac}/namespaces/default/rolebindings`, binding("pods", "pods", "Role"));
    expect(jane.outcome("create", `${rbac}/namespaces/default/roles`, role("r", readPods))).toBe("ok");
    expect(jane.outcome("create", `${rbac}/namespaces/kube-public/roles`, role("r", readPods))).toContain(
      "403",
    );
    expect(jane.outcome("create", `${rbac}/clusterroles`, role("r", readPods))).toContain("403");
  });
});

describe("who binds a role", () => {
  it.each([
    ["that gives what all have", "system:discovery", "ok"],
    ["that gives more", "cluster-admin", "403"],
    ["that is not there", "nope", '404 clusterroles.rbac.authorization.k8s.io "nope" not found'],
  ])("%s", (_name, of, outcome) => {
    const { jane } = withRules();
    expect(jane.outcome("create", `${rbac}/clusterrolebindings`, binding("b", of))).toContain(outcome);
    expect(jane.outcome("create", `${rbac}/namespaces/default/rolebindings`, binding("b", of))).toContain(
      outcome,
    );
  });

  it("may bind the one that they are allowed to bind", () => {
    const { jane } = withRules({
      ...manager,
      verbs: ["bind"],
      resources: ["clusterroles"],
      resourceNames: ["view"],
    });
    expect(jane.outcome("create", `${rbac}/clusterrolebindings`, binding("b", "view"))).toBe("ok");
    expect(jane.outcome("create", `${rbac}/clusterrolebindings`, binding("c", "edit"))).toContain("403");
  });

  it("may not add themselves to a binding that gives more", () => {
    const { jane } = withRules();
    const own = { ...binding("cluster-admin", "cluster-admin") };
    expect(jane.outcome("update", `${rbac}/clusterrolebindings/cluster-admin`, own)).toContain(
      "not currently held",
    );
  });
});
