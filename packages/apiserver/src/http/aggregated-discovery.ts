/**
 * Aggregated discovery: everything that is served in one document, or rather two, `/api` and `/apis`
 * (apidiscovery.k8s.io APIGroupDiscoveryList; kubernetes keps/sig-api-machinery/3352-aggregated-discovery).
 */
import type { KindTable } from "../api/kind-table.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";
import { type CachedDocument, cachedDocument } from "./cached-documents.ts";
import { type ApiResource, groupsOf, resourcesIn, versionsOf } from "./discovery.ts";

/** Versions of `apidiscovery.k8s.io` in which the document can be had: they differ in their name only. */
export const discoveryVersions = ["v2", "v2beta1"] as const;

/** One of {@link discoveryVersions}. */
export type DiscoveryVersion = (typeof discoveryVersions)[number];

/**
 * The document for `/api` or `/apis` if `accept` asks for it and the version has it; undefined when the plain one is
 * asked for first.
 */
export function aggregatedAnswer(
  kinds: KindTable,
  emulated: EmulatedVersion,
  root: "api" | "apis",
  accept: string | undefined,
): CachedDocument | undefined {
  if (!emulated.has("aggregatedDiscovery")) return undefined;
  for (const offer of (accept ?? "").split(",")) {
    const parts = offer.split(";").map((part) => part.trim());
    if (!parts.includes("as=APIGroupDiscoveryList")) {
      if (parts[0] === "application/json" || parts[0] === "*/*") return undefined;
      continue;
    }
    const as = discoveryVersions.find((version) => parts.includes(`v=${version}`));
    if (parts[0] !== "application/json" || as === undefined) continue;
    return cachedDocument(kinds, `discovery ${root} ${as}`, () => ({
      content: JSON.stringify(aggregatedDiscovery(kinds, emulated, root, as)),
      type: discoveryType(as),
    }));
  }
  return undefined;
}

/** The media type of an answer. */
function discoveryType(version: DiscoveryVersion): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}

interface Subresource {
  readonly subresource: string;
  readonly responseKind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

/** The document for `/api` (the core group) or `/apis` (all others). */
export function aggregatedDiscovery(
  kinds: KindTable,
  emulated: EmulatedVersion,
  root: "api" | "apis",
  as: DiscoveryVersion,
): object {
  const groups = groupsOf(kinds).filter((group) => (group === "") === (root === "api"));
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: `apidiscovery.k8s.io/${as}`,
    metadata: {},
    items: groups.map((group) => ({
      metadata: group === "" ? {} : { name: group },
      versions: versionsOf(kinds, group).map((version) => ({
        version,
        resources: resources(resourcesIn(kinds, group, version, emulated), group, version),
        freshness: "Current",
      })),
    })),
  };
}

/** Sub-resources under the resources that they belong to. */
function resources(given: readonly ApiResource[], group: string, version: string): readonly object[] {
  const responseKind = (resource: ApiResource) => ({
    group: resource.group ?? group,
    version: resource.version ?? version,
    kind: resource.kind,
  });
  return given
    .filter(({ name }) => !name.includes("/"))
    .map((resource) => {
      const { name, namespaced, singularName, verbs, shortNames, categories } = resource;
      const subresources: Subresource[] = given
        .filter((other) => other.name.startsWith(`${name}/`))
        .map((other) => ({
          subresource: other.name.slice(name.length + 1),
          responseKind: responseKind(other),
          verbs: other.verbs,
        }));
      return {
        resource: name,
        responseKind: responseKind(resource),
        scope: namespaced ? "Namespaced" : "Cluster",
        singularResource: singularName,
        verbs,
        ...(shortNames === undefined ? {} : { shortNames }),
        ...(categories === undefined ? {} : { categories }),
        ...(subresources.length === 0 ? {} : { subresources }),
      };
    });
}
