/**
 * Puts the default roles and bindings in place: those that are missing are made, and those that are there get back
 * what they lack, unless their annotation `rbac.authorization.kubernetes.io/autoupdate` is `false`
 * (kubernetes registry/rbac/reconciliation). What administrators have added stays.
 */
import { apiTime, type KubeObject, labelSelectorMatcher, type Stored } from "@longshore/kube/basics";
import type { Clock, Random } from "@longshore/runtime";
import { own } from "../../api/own.ts";
import type { Change, Store } from "../../storage/store.ts";
import type { Behaviour } from "../../versions/changes.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { uncovered } from "./cover.ts";
import {
  type BindingObject,
  type PolicyRule,
  type RoleObject,
  rbacGroup,
  type Subject,
} from "./policy-rule.ts";
import {
  aggregatedRoleTable,
  aggregateTo,
  clusterRoleBindingTable,
  clusterRoleTable,
  controllerRoleTable,
  roleBindingTable,
  roleTable,
} from "./role-tables.ts";

const apiVersion = `${rbacGroup}/v1`;
const autoupdate = "rbac.authorization.kubernetes.io/autoupdate";
const labelOf = (role: string) => `${rbacGroup}/aggregate-to-${role}`;

/** What {@link ensureDefaultRoles} works with. */
export interface DefaultRolesEnv {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly version: EmulatedVersion;
}

/** Brings the store's roles and bindings up to the defaults, in one commit. */
export function ensureDefaultRoles({ store, clock, random, version }: DefaultRolesEnv): void {
  // A separate random stream: the numbers of other users stay the same.
  const stream = random.fork("default-roles");
  const now = apiTime(clock.now());
  const changes: Change[] = [];
  for (const { resource, object } of ownedDefaults(version)) {
    const { name, namespace = "" } = object.metadata;
    const there = store.table(resource).get(namespace, name);
    const identity = { resource, namespace, name };
    if (there === undefined) {
      const metadata = { ...object.metadata, uid: stream.uuid("uid"), creationTimestamp: now };
      changes.push({ ...identity, object: { ...object, metadata } as KubeObject });
    } else if (there.metadata.annotations?.[autoupdate] !== "false") {
      const next = reconciled(there, object);
      if (next !== there) changes.push({ ...identity, object: next });
    }
  }
  const roles = new Map<string, RoleObject>();
  for (const role of store.table(`clusterroles.${rbacGroup}`).list()) roles.set(role.metadata.name, role);
  for (const { resource, name, object } of changes) {
    if (resource === `clusterroles.${rbacGroup}` && object !== undefined) roles.set(name, object);
  }
  // With the rules put together: their controller begins later than the first request.
  if (changes.length > 0) store.commit(changes.map((change) => withAggregatedRules(change, roles)));
}

function withAggregatedRules(change: Change, roles: ReadonlyMap<string, RoleObject>): Change {
  const role = change.object as RoleObject;
  if (role.aggregationRule === undefined) return change;
  return { ...change, object: { ...role, rules: aggregatedRules(role, roles.values()) } as KubeObject };
}

/** The rules of all roles that `role` takes in, each once; of those that are put together themselves, too. */
export function aggregatedRules(role: RoleObject, all: Iterable<RoleObject>): readonly PolicyRule[] {
  const others = [...all].sort((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  const found = new Map<string, PolicyRule>();
  const visited = new Set<string>();
  const takeIn = (of: RoleObject) => {
    visited.add(of.metadata?.name ?? "");
    for (const selector of of.aggregationRule?.clusterRoleSelectors ?? []) {
      const matcher = labelSelectorMatcher(selector);
      for (const other of others) {
        const { labels, name = "" } = other.metadata ?? {};
        if (visited.has(name) || !matcher.matches(labels)) continue;
        if (other.aggregationRule !== undefined) takeIn(other);
        else for (const rule of other.rules ?? []) found.set(JSON.stringify(rule), rule);
      }
    }
  };
  takeIn(role);
  return [...found.values()];
}

/** What is there, with what the default has and it lacks. */
function reconciled(there: Stored, wanted: DefaultObject["object"]): KubeObject {
  // What is there counts: an administrator may have changed it.
  const labels = { ...wanted.metadata.labels, ...there.metadata.labels };
  const annotations = { ...wanted.metadata.annotations, ...there.metadata.annotations };
  const sameMaps =
    Object.keys(labels).length === Object.keys(there.metadata.labels ?? {}).length &&
    Object.keys(annotations).length === Object.keys(there.metadata.annotations ?? {}).length;
  const metadata = sameMaps ? there.metadata : { ...there.metadata, labels, annotations };
  if ("roleRef" in wanted) {
    const before = (there as Stored as BindingObject).subjects ?? [];
    const missing = (wanted.subjects ?? []).filter((s) => !before.some((b) => sameSubject(b, s)));
    if (sameMaps && missing.length === 0) return there;
    return { ...there, metadata, subjects: [...before, ...missing] } as KubeObject;
  }
  const role = wanted as RoleObject;
  if (role.aggregationRule !== undefined) return sameMaps ? there : ({ ...there, metadata } as KubeObject);
  const before = (there as Stored as RoleObject).rules ?? [];
  const missing = uncovered(before, role.rules ?? [], Number.POSITIVE_INFINITY).rules;
  if (sameMaps && missing.length === 0) return there;
  return { ...there, metadata, rules: [...before, ...missing] } as KubeObject;
}

function sameSubject(a: Subject, b: Subject): boolean {
  return a.kind === b.kind && a.name === b.name && (a.namespace ?? "") === (b.namespace ?? "");
}

interface DefaultObject {
  readonly resource: string;
  readonly object: (RoleObject | BindingObject) & {
    readonly metadata: {
      readonly name: string;
      readonly namespace?: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    };
  };
}

/** Those of each version, made once: servers of one process share them. */
const owned = new Map<EmulatedVersion["minor"], readonly DefaultObject[]>();

function ownedDefaults(version: EmulatedVersion): readonly DefaultObject[] {
  let defaults = owned.get(version.minor);
  if (defaults === undefined) {
    defaults = own([...defaultRoles(version)]);
    owned.set(version.minor, defaults);
  }
  return defaults;
}

/** Every default role and binding of the version. */
export function* defaultRoles(version: EmulatedVersion): Iterable<DefaultObject> {
  for (const [name, rules] of Object.entries(clusterRoleTable)) {
    const into = aggregateTo[name];
    yield role("ClusterRole", "clusterroles", { name }, parseRules(rules, version), into);
  }
  for (const [name, { into }] of Object.entries(aggregatedRoleTable)) {
    const { resource, object } = role("ClusterRole", "clusterroles", { name }, [], into);
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { [labelOf(name)]: "true" } }] };
    yield { resource, object: { ...object, aggregationRule } };
  }
  for (const [account, lines] of Object.entries(controllerRoleTable)) {
    const rules = parseRules(lines, version);
    if (rules.length === 0) continue;
    const name = `system:controller:${account}`;
    yield role("ClusterRole", "clusterroles", { name }, rules);
    const subjects = [`ServiceAccount kube-system ${account}`];
    yield binding("ClusterRoleBinding", "clusterrolebindings", { name }, "ClusterRole", name, subjects);
  }
  for (const [name, subjects] of Object.entries(clusterRoleBindingTable)) {
    yield binding("ClusterRoleBinding", "clusterrolebindings", { name }, "ClusterRole", name, subjects);
  }
  for (const [namespace, roles] of Object.entries(roleTable)) {
    for (const [name, rules] of Object.entries(roles)) {
      yield role("Role", "roles", { name, namespace }, parseRules(rules, version));
    }
  }
  for (const [namespace, bindings] of Object.entries(roleBindingTable)) {
    for (const [name, [of, ...subjects]] of Object.entries(bindings)) {
      yield binding("RoleBinding", "rolebindings", { name, namespace }, "Role", of, subjects);
    }
  }
}

type Identity = { readonly name: string; readonly namespace?: string };

function metadataOf(identity: Identity, into?: string) {
  const labels = {
    "kubernetes.io/bootstrapping": "rbac-defaults",
    ...(into === undefined ? {} : { [labelOf(into)]: "true" }),
  };
  return { ...identity, labels, annotations: { [autoupdate]: "true" } };
}

function role(
  kind: string,
  plural: string,
  identity: Identity,
  rules: readonly PolicyRule[],
  into?: string,
): DefaultObject {
  const object = { apiVersion, kind, metadata: metadataOf(identity, into), rules };
  return { resource: `${plural}.${rbacGroup}`, object: object as DefaultObject["object"] };
}

function binding(
  kind: string,
  plural: string,
  identity: Identity,
  roleKind: string,
  name: string,
  subjects: readonly string[],
): DefaultObject {
  const object = {
    apiVersion,
    kind,
    metadata: metadataOf(identity),
    roleRef: { apiGroup: rbacGroup, kind: roleKind, name },
    ...(subjects.length === 0 ? {} : { subjects: subjects.map(parseSubject) }),
  };
  return { resource: `${plural}.${rbacGroup}`, object: object as DefaultObject["object"] };
}

function parseSubject(text: string): Subject {
  const [kind = "", first = "", second = ""] = text.split(" ");
  if (kind === "ServiceAccount") return { kind, name: second, namespace: first };
  return { kind, apiGroup: rbacGroup, name: first };
}

const verbWords: Readonly<Record<string, readonly string[]>> = {
  read: ["get", "list", "watch"],
  write: ["create", "delete", "deletecollection", "patch", "update"],
};

/** The lines that the version has, as rules. */
export function parseRules(lines: readonly string[], version: EmulatedVersion): readonly PolicyRule[] {
  return lines.flatMap((line) => {
    const [rule = "", behaviour] = line.split(" with ");
    return behaviour === undefined || version.has(behaviour as Behaviour) ? [parseRule(rule)] : [];
  });
}

/** Reads one line of the table (see its header). */
export function parseRule(line: string): PolicyRule {
  const [verbText = "", what = "", ...rest] = line.split(" ");
  const verbs = verbText.split(",").flatMap((word) => verbWords[word] ?? [word]);
  const sorted = verbs.length > 1 ? verbs.sort() : verbs;
  if (what.startsWith("/") || (what === "*" && rest.length === 0)) {
    return { verbs: sorted, nonResourceURLs: what.split(",") };
  }
  const option = (word: string) => {
    const at = rest.indexOf(word);
    return at < 0 ? undefined : (rest[at + 1] ?? "").split(",");
  };
  const groups = option("in") ?? ["core"];
  const resourceNames = option("named");
  return {
    verbs: sorted,
    apiGroups: groups.map((group) => (group === "core" ? "" : group)),
    resources: what.split(","),
    ...(resourceNames === undefined ? {} : { resourceNames }),
  };
}
