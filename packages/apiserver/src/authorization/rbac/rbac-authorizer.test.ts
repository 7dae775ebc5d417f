import type { KubeObject } from "@longshore/kube";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../storage/object-store.ts";
import type { Store } from "../../storage/store.ts";
import type { Attributes } from "../authorizer.ts";
import { type PolicyRule, rbacGroup, ruleAllows } from "./policy-rule.ts";
import { RbacAuthorizer } from "./rbac-authorizer.ts";

const jane = { name: "jane", groups: ["devs", "system:authenticated"] };
const bot = {
  name: "system:serviceaccount:team:bot",
  groups: ["system:serviceaccounts", "system:serviceaccounts:team"],
};

function put(store: Store, kind: string, namespace: string, name: string, rest: object | undefined): void {
  const resource = `${kind.toLowerCase()}s.${rbacGroup}`;
  const metadata = { name, ...(namespace === "" ? {} : { namespace }), uid: name };
  const object =
    rest === undefined
      ? {}
      : { object: { kind, apiVersion: `${rbacGroup}/v1`, metadata, ...rest } as KubeObject };
  store.commit([{ resource, namespace, name, ...object }]);
}

const reads = (resource: string): PolicyRule[] => [
  { verbs: ["get"], apiGroups: [""], resources: [resource] },
];
const ref = (kind: string, name: string) => ({ apiGroup: rbacGroup, kind, name });
const get = (resource: string, namespace = "", user = jane): Attributes => ({
  user,
  verb: "get",
  group: "",
  resource,
  namespace,
});

describe("a role that is bound", () => {
  it.each([
    ["in the whole cluster", "ClusterRoleBinding", "", { team: true, other: true, cluster: true }],
    ["in one namespace", "RoleBinding", "team", { team: true, other: false, cluster: false }],
  ])("%s counts there", (_where, kind, namespace, expected) => {
    const store = memoryStore();
    const rbac = new RbacAuthorizer(store);
    put(store, "ClusterRole", "", "r", { rules: reads("pods") });
    put(store, kind, namespace, "b", {
      roleRef: ref("ClusterRole", "r"),
      subjects: [{ kind: "Group", name: "devs" }],
    });
    expect({
      team: rbac.authorize(get("pods", "team")).allowed,
      other: rbac.authorize(get("pods", "other")).allowed,
      cluster: rbac.authorize(get("pods")).allowed,
    }).toEqual(expected);
  });

  it.each([
    [{ kind: "User", name: "jane" }, jane, true],
    [{ kind: "User", name: "devs" }, jane, false],
    [{ kind: "Group", name: "jane" }, jane, false],
    [{ kind: "ServiceAccount", name: "bot" }, bot, true],
    [{ kind: "ServiceAccount", name: "bot", namespace: "team" }, bot, true],
    [{ kind: "ServiceAccount", name: "bot", namespace: "other" }, bot, false],
    [{ kind: "Group", name: "system:serviceaccounts:team" }, bot, true],
    [{ kind: "Robot", name: "jane" }, jane, false],
  ])("to %j holds for the right ones", (subject, user, allowed) => {
    const store = memoryStore();
    const rbac = new RbacAuthorizer(store);
    put(store, "Role", "team", "r", { rules: reads("pods") });
    put(store, "RoleBinding", "team", "b", { roleRef: ref("Role", "r"), subjects: [subject] });
    expect(rbac.authorize(get("pods", "team", user)).allowed).toBe(allowed);
  });

  it("says why it allows", () => {
    const store = memoryStore();
    const rbac = new RbacAuthorizer(store);
    put(store, "Role", "team", "r", { rules: reads("pods") });
    put(store, "RoleBinding", "team", "b", {
      roleRef: ref("Role", "r"),
      subjects: [{ kind: "ServiceAccount", name: "bot" }],
    });
    expect(rbac.authorize(get("pods", "team", bot)).reason).toBe(
      'RBAC: allowed by RoleBinding "b/team" of Role "r" to ServiceAccount "bot/team"',
    );
  });

  it("says which role is missing, and gives nothing", () => {
    const store = memoryStore();
    const rbac = new RbacAuthorizer(store);
    put(store, "ClusterRoleBinding", "", "b", {
      roleRef: ref("ClusterRole", "gone"),
      subjects: [{ kind: "User", name: "jane" }],
    });
    expect(rbac.authorize(get("pods"))).toEqual({
      allowed: false,
      reason: `RBAC: clusterrole.${rbacGroup} "gone" not found`,
    });
    put(store, "ClusterRole", "", "gone", { rules: reads("pods") });
    expect(rbac.authorize(get("pods")).allowed).toBe(true);
    put(store, "ClusterRole", "", "gone", { rules: reads("secrets") });
    expect(rbac.authorize(get("pods")).allowed).toBe(false);
  });

  it("of another namespace's Role cannot be reached", () => {
    const store = memoryStore();
    const rbac = new RbacAuthorizer(store);
    put(store, "Role", "other", "r", { rules: reads("pods") });
    put(store, "RoleBinding", "team", "b", {
      roleRef: ref("Role", "r"),
      subjects: [{ kind: "User", name: "jane" }],
    });
    expect(rbac.authorize(get("pods", "team")).allowed).toBe(false);
    expect(rbac.authorize(get("pods", "other")).allowed).toBe(false);
  });
});

describe("the index of bindings", () => {
  const change = fc.record({
    kind: fc.constantFrom("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"),
    namespace: fc.constantFrom("team", "other"),
    name: fc.constantFrom("a", "b", "c"),
    role: fc.constantFrom("a", "b"),
    roleKind: fc.constantFrom("Role", "ClusterRole"),
    subjects: fc.array(fc.constantFrom("User jane", "Group devs", "Group ops", "ServiceAccount bot"), {
      maxLength: 2,
    }),
    resource: fc.constantFrom("pods", "secrets", "*"),
    remove: fc.boolean(),
  });

  it("answers as a search through all bindings would, after any changes", () => {
    let allowed = 0;
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 25 }), (changes) => {
        const store = memoryStore({ historyLimit: 3 });
        const rbac = new RbacAuthorizer(store);
        for (const { kind, namespace, name, role, roleKind, subjects, resource, remove } of changes) {
          const where = kind.startsWith("Cluster") ? "" : namespace;
          const there = store.table(`${kind.toLowerCase()}s.${rbacGroup}`).get(where, name) !== undefined;
          if (remove && !there) continue;
          const binding = {
            roleRef: ref(where === "" ? "ClusterRole" : roleKind, role),
            subjects: subjects.map((text) => ({
              kind: text.split(" ")[0],
              name: text.split(" ")[1],
              ...(where === "" ? { namespace: "team" } : {}),
            })),
          };
          put(
            store,
            kind,
            where,
            name,
            remove ? undefined : kind.endsWith("Binding") ? binding : { rules: reads(resource) },
          );
          for (const user of [jane, bot]) {
            for (const question of [
              get("pods", "team", user),
              get("secrets", "other", user),
              get("pods", "", user),
            ]) {
              const answer = rbac.authorize(question).allowed;
              expect(answer, JSON.stringify(question)).toBe(searched(store, question));
              if (answer) allowed++;
            }
          }
        }
      }),
      { numRuns: 150, seed: 3 },
    );
    expect(allowed).toBeGreaterThan(100);
  });
});

/** The same question, by going through everything there is. */
function searched(store: Store, question: Attributes): boolean {
  const namespace = question.path === undefined ? (question.namespace ?? "") : "";
  const bindings = [
    ...store.table(`clusterrolebindings.${rbacGroup}`).list(),
    ...(namespace === "" ? [] : store.table(`rolebindings.${rbacGroup}`).list(namespace)),
  ] as unknown as {
    metadata: { namespace?: string };
    roleRef: { kind: string; name: string };
    subjects: { kind: string; name: string; namespace?: string }[];
  }[];
  return bindings.some(({ metadata, roleRef, subjects }) => {
    const isMeant = subjects.some(({ kind, name, namespace: of }) =>
      kind === "User"
        ? name === question.user.name
        : kind === "Group"
          ? question.user.groups.includes(name)
          : question.user.name === `system:serviceaccount:${of ?? metadata.namespace}:${name}`,
    );
    const table = store.table(`${roleRef.kind.toLowerCase()}s.${rbacGroup}`);
    const role = table.get(roleRef.kind === "ClusterRole" ? "" : (metadata.namespace ?? ""), roleRef.name);
    const rules = (role as { rules?: PolicyRule[] } | undefined)?.rules ?? [];
    return isMeant && rules.some((one) => ruleAllows(one, question));
  });
}
