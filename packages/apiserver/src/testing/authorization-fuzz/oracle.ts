/**
 * What a right allows, judged by the effect alone: what changed in the store, and what of its objects an answer shows. It
 * knows nothing of paths. The effects of sub-resources follow the strategies of the reference (kubernetes pkg/registry).
 */
import type { KubeObject } from "@longshore/kube";
import { type FuzzKind, tableOf } from "./kinds.ts";

/** The one right that a user has. `*` stands for all groups, resources or verbs. */
export interface FuzzRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Left out: in the whole cluster. */
  readonly namespace?: string;
  readonly name?: string;
}

/** Where an object is: its kind, namespace ("" for those of the cluster) and name. */
export interface Spot {
  readonly of: FuzzKind;
  readonly namespace: string;
  readonly name: string;
}

/** One changed object. */
export interface Change extends Spot {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** True when the right is for one of the verbs on the object, or on one of those parts of it. */
function allows(
  right: FuzzRight,
  verbs: readonly string[],
  spot: Spot,
  parts: readonly string[] = [""],
): boolean {
  const { group, plural } = spot.of;
  if (right.verb !== "*" && !verbs.includes(right.verb)) return false;
  if (right.group !== "*" && right.group !== group) return false;
  const resources = parts.map((part) => (part === "" ? plural : `${plural}/${part}`));
  if (right.resource !== "*" && !resources.includes(right.resource)) return false;
  // A namespace, and nothing else of the cluster, is in the namespace of its name.
  const where = group === "" && plural === "namespaces" ? spot.name : spot.namespace;
  if (right.namespace !== undefined && right.namespace !== where) return false;
  return right.name === undefined || right.verb === "create" || right.name === spot.name;
}

/** Why that right alone does not allow the change; undefined when it does. */
export function whyNotChange(right: FuzzRight, change: Change): string | undefined {
  const { of, before, after } = change;
  const what = `${tableOf(of)} ${change.namespace}/${change.name}`;
  if (before === undefined) {
    if (!allows(right, ["create"], change)) return `creates ${what}`;
    return grantsMore(right, change) ? `gives rights away: ${what}` : undefined;
  }
  if (after === undefined) return mayRemove(right, change, before) ? undefined : `deletes ${what}`;
  const members = changedMembers(before, after);
  if (members.length === 0) return undefined;
  if (grantsMore(right, change)) return `gives rights away: ${what}`;
  return mayModify(right, change, members) ? undefined : `changes ${members.join(", ")} of ${what}`;
}

function mayRemove(right: FuzzRight, change: Change, before: KubeObject): boolean {
  if (allows(right, ["delete"], change) || deletesMany(right, change)) return true;
  if (isPod(change.of) && allows(right, ["create"], change, ["eviction"])) return true;
  // Removing the last finalizer of an object that is being deleted removes the object.
  const isGoing = before.metadata?.deletionTimestamp !== undefined;
  return isGoing && allows(right, ["update", "patch"], change, ["", "status", "finalize"]);
}

/** A right to delete many that is for one name allows nothing: the request names none. */
function deletesMany(right: FuzzRight, spot: Spot): boolean {
  return right.name === undefined && allows(right, ["deletecollection"], spot);
}

interface Effect {
  readonly verbs: readonly string[];
  readonly part: string;
  readonly members: RegExp;
}

const writes = ["update", "patch"];
const deletion = /^(metadata\.(deletionTimestamp|deletionGracePeriodSeconds|finalizers)|status(\..*)?)$/;
const effects: readonly Effect[] = [
  { verbs: writes, part: "status", members: /^(metadata\..*|status(\..*)?)$/ },
  { verbs: writes, part: "scale", members: /^spec(\.replicas)?$/ },
  { verbs: writes, part: "ephemeralcontainers", members: /^spec\.ephemeralContainers$/ },
  { verbs: writes, part: "resize", members: /^spec\.(containers|initContainers)$/ },
  { verbs: ["update"], part: "finalize", members: /^(metadata\..*|spec(\.finalizers)?)$/ },
  { verbs: ["create"], part: "binding", members: /^(metadata\.annotations|spec\.nodeName|status(\..*)?)$/ },
  { verbs: ["create"], part: "eviction", members: deletion },
  { verbs: ["delete"], part: "", members: deletion },
];

function mayModify(right: FuzzRight, change: Change, members: readonly string[]): boolean {
  const { of } = change;
  const ofStatus = members.some((member) => member.startsWith("status"));
  const isStatusApart = of.subresources.includes("status");
  // A user who may write the object may write all but the status; the status too, where it is no sub-resource.
  if (!(ofStatus && isStatusApart) && allows(right, writes, change)) return true;
  if (deletesMany(right, change) && members.every((member) => deletion.test(member))) return true;
  return effects.some(
    (effect) =>
      (effect.part === "" || of.subresources.includes(effect.part)) &&
      allows(right, effect.verbs, change, [effect.part]) &&
      members.every((member) => effect.members.test(member)),
  );
}

/** Every role of the fuzz allows more than its one right, and every binding binds more. */
function grantsMore({ verb }: FuzzRight, { of, before, after }: Change): boolean {
  if (of.group !== "rbac.authorization.k8s.io" || verb === "*") return false;
  const given = (object: KubeObject | undefined) => {
    const { rules, roleRef, subjects } = (object ?? {}) as Record<string, unknown>;
    return JSON.stringify([rules, roleRef, subjects]);
  };
  const { rules = [], roleRef } = after as { rules?: readonly object[]; roleRef?: object };
  return (rules.length > 0 || roleRef !== undefined) && given(before) !== given(after);
}

const isPod = ({ group, plural }: FuzzKind) => group === "" && plural === "pods";
const kept: ReadonlySet<string> = new Set(["resourceVersion", "managedFields", "generation"]);

/** Which members differ: `metadata.labels`, `spec.replicas`, `data`. */
function changedMembers(before: KubeObject, after: KubeObject): readonly string[] {
  const differs = (a: unknown, b: unknown) => JSON.stringify(a) !== JSON.stringify(b);
  const members: string[] = [];
  const [old, now] = [before, after] as unknown as readonly Record<
    string,
    Record<string, unknown> | undefined
  >[];
  for (const top of new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])) {
    const [a, b] = [old?.[top], now?.[top]];
    if (!differs(a, b)) continue;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
      members.push(top);
      continue;
    }
    for (const member of new Set([...Object.keys(a), ...Object.keys(b)])) {
      if (top === "metadata" && kept.has(member)) continue;
      if (differs(a[member], b[member])) members.push(`${top}.${member}`);
    }
  }
  return members;
}

/** Why that right alone does not allow reading an object that an answer shows. */
export function whyNotShown(
  right: FuzzRight,
  spot: Spot,
  form: "watch" | "list" | "object",
): string | undefined {
  const what = `${form} shows ${tableOf(spot.of)} ${spot.namespace}/${spot.name}`;
  if (form === "watch") return allows(right, ["watch"], spot) ? undefined : what;
  if (form === "list") return allows(right, ["list"], spot) || deletesMany(right, spot) ? undefined : what;
  const parts = ["", ...spot.of.subresources];
  return allows(right, ["get", "update", "patch", "delete"], spot, parts) ? undefined : what;
}

/** Why that right alone does not allow a token. */
export function whyNotToken(right: FuzzRight, account: Spot): string | undefined {
  if (allows(right, ["create"], account, ["token"])) return undefined;
  return `hands out a token of ${account.namespace}/${account.name}`;
}
