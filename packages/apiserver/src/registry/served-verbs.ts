/** Which verbs a kind is served with, and where: the one table behind paths, discovery and the registry. */

import type { Target, Verb } from "../api/api-request.ts";
import type { Kind } from "../api/kind.ts";

/** Where in a kind's resources a request points. */
export type Place = Pick<Target, "namespace" | "name" | "subresource">;

const none: readonly Verb[] = [];
const acrossNamespaces: readonly Verb[] = ["list", "watch"];
const ofCollection: readonly Verb[] = ["list", "watch", "create", "deletecollection"];
const ofKeptCollection: readonly Verb[] = ["list", "watch", "create"];
const ofObject: readonly Verb[] = ["get", "watch", "update", "patch", "delete"];
const ofStatus: readonly Verb[] = ["get", "patch", "update"];

/** The verbs that are served there; none where nothing is. */
export function servedVerbs(of: Kind, { namespace, name, subresource }: Place): readonly Verb[] {
  if (!of.namespaced && (namespace !== undefined || isInItself(of, name))) return none;
  if (of.namespaced && namespace === undefined) {
    return name === undefined && subresource === undefined && of.virtual !== true ? acrossNamespaces : none;
  }
  if (subresource !== undefined) return name === undefined ? none : verbsOfSubresource(of, subresource);
  if (of.virtual === true) return name === undefined ? ["create"] : none;
  if (of.readOnly === true) return name === undefined ? ["list"] : ["get"];
  if (name !== undefined) return ofObject;
  return of.noDeleteCollection === true ? ofKeptCollection : ofCollection;
}

/** The order in which discovery has the verbs of custom resources (apiextensions-apiserver customresource_discovery_controller.go). */
const orderOfCustom: readonly Verb[] = [
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "create",
  "update",
  "watch",
];

/** All verbs of the kind itself, wherever, in the order of discovery. */
export function allVerbs(of: Kind): readonly Verb[] {
  const namespace = of.namespaced ? { namespace: "" } : {};
  const all = new Set([...servedVerbs(of, namespace), ...servedVerbs(of, { ...namespace, name: "" })]);
  return of.custom === undefined ? [...all].sort() : orderOfCustom.filter((verb) => all.has(verb));
}

/**
 * `namespaces/NAME` is in the namespace NAME by the rules of paths. Of the core group that is so; a custom resource of
 * the cluster that is called the same could be written with rights in a namespace, so it is not served.
 */
function isInItself(of: Kind, name: string | undefined): boolean {
  return of.custom !== undefined && of.plural === "namespaces" && name !== undefined;
}

function verbsOfSubresource(of: Kind, subresource: string): readonly Verb[] {
  if (subresource === "status") return of.statusSubresource === true ? ofStatus : none;
  const { subresources } = of;
  if (subresources === undefined || !Object.hasOwn(subresources, subresource)) return none;
  const { verbs = none, isOfNode = false } = subresources[subresource] ?? {};
  return isOfNode ? none : (verbs as readonly Verb[]);
}
