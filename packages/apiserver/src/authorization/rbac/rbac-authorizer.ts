/**
 * Allows what roles allow that are bound to the user or to one of the user's groups
 * (kubernetes plugin/pkg/auth/authorizer/rbac).
 *
 * Invariants
 *  - The bindings are indexed by subject; the index follows the store and is never rebuilt as a whole.
 *  - A binding whose role is missing grants nothing, and is named in the reason.
 */
import type { Stored } from "@longshore/kube";
import type { UserInfo } from "../../api/api-request.ts";
import { FollowedTable } from "../../storage/followed-table.ts";
import { keyOf, type Store } from "../../storage/store.ts";
import type { Attributes, Authorizer, Decision } from "../authorizer.ts";
import {
  type BindingObject,
  type PolicyRule,
  type RoleObject,
  rbacGroup,
  type Subject,
} from "./policy-rule.ts";
import { roleAllows } from "./role-index.ts";

/** The rules that apply to a user, and the problems met while resolving them. */
export interface UserRules {
  readonly rules: readonly PolicyRule[];
  readonly problems: readonly string[];
}

interface Bound {
  readonly binding: BindingObject;
  readonly subject: Subject;
}

/** Authorizes a request by the roles that are bound to the user or the user's groups. */
export class RbacAuthorizer implements Authorizer {
  readonly #store: Store;
  readonly #followed: readonly FollowedTable[];
  /** Bindings by namespace ("" for the whole cluster), then subject, then their own key. */
  readonly #bySubject = new Map<string, Map<string, Map<string, Bound>>>();

  constructor(store: Store) {
    this.#store = store;
    this.#followed = [`clusterrolebindings.${rbacGroup}`, `rolebindings.${rbacGroup}`].map(
      (table) =>
        new FollowedTable(store, table, (key, object, previous) => {
          if (previous !== undefined) this.#forget(key, previous);
          if (object !== undefined) this.#note(key, object);
        }),
    );
  }

  authorize(attributes: Attributes): Decision {
    const namespace = attributes.path === undefined ? (attributes.namespace ?? "") : "";
    const missing: string[] = [];
    for (const bound of this.#boundTo(attributes.user, namespace)) {
      const role = this.#roleOf(bound.binding);
      if (role === undefined) missing.push(missingRole(bound.binding));
      else if (roleAllows(role, attributes)) return { allowed: true, reason: groundOf(bound) };
    }
    return { allowed: false, reason: missing.length === 0 ? "" : `RBAC: ${aggregate(missing)}` };
  }

  /** All rules that apply to the user in the namespace; "" is the whole cluster. */
  rulesFor(user: UserInfo, namespace: string): UserRules {
    const rules: PolicyRule[] = [];
    const problems: string[] = [];
    for (const { binding } of this.#boundTo(user, namespace)) {
      const role = this.#roleOf(binding);
      if (role === undefined) problems.push(missingRole(binding));
      else rules.push(...(role.rules ?? []));
    }
    return { rules, problems };
  }

  /** The role that the binding grants, or undefined when there is none. */
  #roleOf({ roleRef, metadata }: BindingObject): RoleObject | undefined {
    const isOfCluster = roleRef.kind === "ClusterRole";
    const table = this.#store.table(`${isOfCluster ? "clusterroles" : "roles"}.${rbacGroup}`);
    return table.get(isOfCluster ? "" : (metadata?.namespace ?? ""), roleRef.name) as RoleObject | undefined;
  }

  /** Bindings of the cluster first, then those of the namespace. */
  *#boundTo(user: UserInfo, namespace: string): Iterable<Bound> {
    for (const table of this.#followed) table.catchUp();
    const seen = new Set<BindingObject>();
    for (const where of namespace === "" ? [""] : ["", namespace]) {
      const bySubject = this.#bySubject.get(where);
      if (bySubject === undefined) continue;
      for (const subject of subjectsOf(user)) {
        for (const bound of bySubject.get(subject)?.values() ?? []) {
          if (seen.has(bound.binding)) continue;
          seen.add(bound.binding);
          yield bound;
        }
      }
    }
  }

  #note(key: string, object: Stored): void {
    const binding = object as Stored & BindingObject;
    const namespace = binding.metadata.namespace ?? "";
    for (const subject of binding.subjects ?? []) {
      const id = subjectId(subject, namespace);
      if (id === undefined) continue;
      const bySubject = entry(this.#bySubject, namespace, () => new Map<string, Map<string, Bound>>());
      entry(bySubject, id, () => new Map<string, Bound>()).set(key, { binding, subject });
    }
  }

  #forget(key: string, object: Stored): void {
    const binding = object as Stored & BindingObject;
    const namespace = binding.metadata.namespace ?? "";
    const bySubject = this.#bySubject.get(namespace);
    for (const subject of binding.subjects ?? []) {
      const id = subjectId(subject, namespace);
      if (id === undefined) continue;
      const bound = bySubject?.get(id);
      bound?.delete(key);
      if (bound?.size === 0) bySubject?.delete(id);
    }
    if (bySubject?.size === 0) this.#bySubject.delete(namespace);
  }
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/** What the index calls the subject; undefined for one of no known kind. */
function subjectId({ kind, name, namespace }: Subject, ofBinding: string): string | undefined {
  if (kind === "User") return `u:${name}`;
  if (kind === "Group") return `g:${name}`;
  if (kind !== "ServiceAccount") return undefined;
  const where = namespace === undefined || namespace === "" ? ofBinding : namespace;
  return where === "" ? undefined : `u:system:serviceaccount:${where}:${name}`;
}

function* subjectsOf(user: UserInfo): Iterable<string> {
  yield `u:${user.name}`;
  for (const group of user.groups) yield `g:${group}`;
}

function groundOf({ binding, subject }: Bound): string {
  const { name, namespace = "" } = binding.metadata ?? {};
  const what =
    // The reference, too, writes the name before the namespace.
    namespace === "" ? `ClusterRoleBinding "${name}"` : `RoleBinding "${keyOf(name ?? "", namespace)}"`;
  const who =
    subject.kind === "ServiceAccount"
      ? `"${subject.name}/${subject.namespace ?? namespace}"`
      : `"${subject.name}"`;
  const { kind, name: role } = binding.roleRef;
  return `RBAC: allowed by ${what} of ${kind} "${role}" to ${subject.kind} ${who}`;
}

function missingRole({ roleRef }: BindingObject): string {
  return `${roleRef.kind.toLowerCase()}.${rbacGroup} "${roleRef.name}" not found`;
}

function aggregate(problems: readonly string[]): string {
  const distinct = [...new Set(problems)];
  return distinct.length === 1 ? (distinct[0] as string) : `[${distinct.join(", ")}]`;
}
