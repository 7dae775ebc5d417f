/**
 * What a node may do: read what its pods need, and write what is its own
 * (kubernetes plugin/pkg/auth/authorizer/node). What exactly it may write is for the NodeRestriction admission.
 */
import type { UserInfo } from "../../api/api-request.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import {
  type Attributes,
  type Authorizer,
  type Decision,
  type ResourceAttributes,
  valueSelected,
} from "../authorizer.ts";
import { parseRules } from "../rbac/default-roles.ts";
import { type PolicyRule, ruleAllows } from "../rbac/policy-rule.ts";
import { clusterRoleTable } from "../rbac/role-tables.ts";
import type { NodeGraph } from "./node-graph.ts";
import type { Reference } from "./pod-references.ts";

const prefix = "system:node:";

/** The name of the node that the user is; undefined for anybody else. */
export function nodeOf({ name, groups }: UserInfo): string | undefined {
  if (!name.startsWith(prefix) || !groups.includes("system:nodes")) return undefined;
  return name.slice(prefix.length);
}

const ground: Decision = { allowed: true, reason: "" };
const noOpinion: Decision = { allowed: false, reason: "" };
const refused = (reason: string): Decision => ({ allowed: false, reason });

type Rule = (graph: NodeGraph, node: string, attributes: ResourceAttributes) => Decision | undefined;

/** The rules by `resource.group`; what they pass over is left to the role `system:node`. */
const rules: Readonly<Record<string, Rule>> = {
  secrets: (graph, node, attributes) => readsNamed(graph, node, attributes, "secrets"),
  configmaps: (graph, node, attributes) => readsNamed(graph, node, attributes, "configmaps"),
  persistentvolumeclaims: claim,
  persistentvolumes: (graph, node, attributes) =>
    getsOne(attributes) ?? related(node, graph.needsVolume(node, attributes.name ?? "")),
  "volumeattachments.storage.k8s.io": (graph, node, attributes) =>
    getsOne(attributes) ?? related(node, graph.isAttachedTo(node, attributes.name ?? "")),
  serviceaccounts: token,
  "leases.coordination.k8s.io": lease,
  "csinodes.storage.k8s.io": csiNode,
};

/** Rules that came later: a node sees its own pods and itself, not those of others. */
const selectorRules: Readonly<Record<string, Rule>> = { pods: ownPods, nodes: ownNode };

/** Makes the authorizer. */
export function nodeAuthorizer(graph: NodeGraph, version: EmulatedVersion): Authorizer {
  const ofRole = parseRules(clusterRoleTable["system:node"] ?? [], version);
  const all = version.has("nodesSeeTheirOwn") ? { ...rules, ...selectorRules } : rules;
  return {
    authorize(attributes) {
      const node = nodeOf(attributes.user);
      if (node === undefined) return noOpinion;
      if (node === "") return refused(`unknown node for user "${attributes.user.name}"`);
      if (attributes.path === undefined) {
        const { group, resource } = attributes;
        const rule = all[group === "" ? resource : `${resource}.${group}`];
        const decision = rule?.(graph, node, attributes);
        if (decision !== undefined) return decision;
      }
      return byRole(ofRole, attributes);
    },
  };
}

function byRole(ofRole: readonly PolicyRule[], attributes: Attributes): Decision {
  return ofRole.some((rule) => ruleAllows(rule, attributes)) ? ground : noOpinion;
}

function related(node: string, isRelated: boolean): Decision {
  return isRelated ? ground : refused(`no relationship found between node '${node}' and this object`);
}

/** Why it is not a GET of one object; undefined when it is. */
function getsOne({ verb, name = "", subresource = "" }: ResourceAttributes): Decision | undefined {
  if (verb !== "get" || name === "") return refused("can only get individual resources of this type");
  return subresource === "" ? undefined : refused("cannot get subresource");
}

function readsNamed(
  graph: NodeGraph,
  node: string,
  { verb, namespace = "", name = "", subresource = "" }: ResourceAttributes,
  table: Reference["table"],
): Decision {
  // A kubelet follows single objects: a list or watch that selects one name.
  if (verb !== "get" && verb !== "list" && verb !== "watch") {
    return refused("can only read resources of this type");
  }
  if (subresource !== "") return refused("cannot read subresource");
  if (namespace === "") return refused("can only read namespaced object of this type");
  if (name === "") return refused("No Object name found");
  return related(node, graph.needs(node, { table, namespace, name }));
}

function claim(graph: NodeGraph, node: string, attributes: ResourceAttributes): Decision {
  const { verb, namespace = "", name = "", subresource = "" } = attributes;
  if (subresource === "status") {
    if (verb !== "update" && verb !== "patch" && verb !== "get") {
      return refused("can only get/update/patch this type");
    }
  } else {
    const problem = getsOne(attributes);
    if (problem !== undefined) return problem;
  }
  return related(node, graph.needs(node, { table: "persistentvolumeclaims", namespace, name }));
}

function token(graph: NodeGraph, node: string, attributes: ResourceAttributes): Decision | undefined {
  const { verb, namespace = "", name = "", subresource = "" } = attributes;
  if (verb !== "create" || name === "") {
    return refused("can only create tokens for individual service accounts");
  }
  if (subresource !== "token") return refused("can only create token subresource of service account");
  return related(node, graph.needs(node, { table: "serviceaccounts", namespace, name }));
}

const ownVerbs: ReadonlySet<string> = new Set(["get", "create", "update", "patch", "delete"]);

function lease(_graph: NodeGraph, node: string, attributes: ResourceAttributes): Decision {
  const { verb, namespace = "", name = "" } = attributes;
  if (!ownVerbs.has(verb)) return refused("can only get, create, update, patch, or delete a node lease");
  if (namespace !== "kube-node-lease") {
    return refused('can only access leases in the "kube-node-lease" system namespace');
  }
  // The name of a new one is not known yet.
  if (verb === "create" || name === node) return ground;
  return refused("can only access node lease with the same name as the requesting node");
}

function csiNode(_graph: NodeGraph, node: string, attributes: ResourceAttributes): Decision {
  const { verb, name = "", subresource = "" } = attributes;
  if (!ownVerbs.has(verb)) return refused("can only get, create, update, patch, or delete a CSINode");
  if (subresource !== "") return refused("cannot authorize CSINode subresources");
  if (verb === "create" || name === node) return ground;
  return refused("can only access CSINode with the same name as the requesting node");
}

function ownPods(graph: NodeGraph, node: string, attributes: ResourceAttributes): Decision | undefined {
  const { verb, namespace = "", name = "", subresource = "", fields } = attributes;
  if (subresource !== "") return undefined;
  if (verb === "get") return related(node, graph.runs(node, namespace, name));
  if (verb !== "list" && verb !== "watch") return undefined;
  if (name !== "" && namespace !== "") return related(node, graph.runs(node, namespace, name));
  if (valueSelected(fields, "spec.nodeName") === node) return ground;
  return refused("can only list/watch pods with spec.nodeName field selector");
}

function ownNode(_graph: NodeGraph, node: string, attributes: ResourceAttributes): Decision | undefined {
  const { verb, name = "", subresource = "" } = attributes;
  if (subresource !== "" || (verb !== "get" && verb !== "list" && verb !== "watch")) return undefined;
  if (name === node) return ground;
  return refused(`node '${node}' cannot read '${name}', only its own Node object`);
}
