/**
 * The discovery documents: they list what is served, each for one version of one group. The kind table knows
 * the kinds; this file only formats them.
 */
import { createHash } from "node:crypto";
import { compareVersions } from "../api/compare-versions.ts";
import { type Kind, storedApiVersion } from "../api/kind.ts";
import { type KindTable, kindInVersion } from "../api/kind-table.ts";
import { allVerbs } from "../registry/served-verbs.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";

/** A resource or sub-resource as discovery describes it (meta/v1 APIResource). */
export interface ApiResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  /** Only where it is another one than that of the list. */
  readonly group?: string;
  readonly version?: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly storageVersionHash?: string;
}

/**
 * Groups in the order in which clients look for a name without a group (kube-apiserver's group priorities); those
 * of custom resources follow by their names.
 */
const groupOrder: readonly string[] = [
  "",
  "apiregistration.k8s.io",
  "apps",
  "events.k8s.io",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "networking.k8s.io",
  "extensions",
  "policy",
  "rbac.authorization.k8s.io",
  "storage.k8s.io",
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "scheduling.k8s.io",
  "coordination.k8s.io",
  "node.k8s.io",
  "discovery.k8s.io",
  "resource.k8s.io",
  "flowcontrol.apiserver.k8s.io",
];

/** The groups that are served, the core group first. */
export function groupsOf(kinds: KindTable): readonly string[] {
  const place = (group: string) => {
    const at = groupOrder.indexOf(group);
    return at < 0 ? groupOrder.length : at;
  };
  const groups = [...new Set(kinds.all().map((kind) => kind.group))];
  return groups.sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}

/** The versions of a group, the preferred one first (`v1`, then betas, then alphas, newer ones first). */
export function versionsOf(kinds: KindTable, group: string): readonly string[] {
  const of = kinds.all().filter((kind) => kind.group === group);
  return [...new Set(of.flatMap((kind) => kind.versions))].sort(compareVersions);
}

/** The resources of a kind in one version: its own and its sub-resources. */
function resourcesOf(kind: Kind, version: EmulatedVersion): readonly ApiResource[] {
  const base = { singularName: "", namespaced: kind.namespaced, kind: kind.kind };
  const result: ApiResource[] = [
    {
      name: kind.plural,
      ...base,
      singularName: version.has("singularNames") || kind.custom !== undefined ? singularOf(kind) : "",
      verbs: allVerbs(kind),
      ...(kind.shortNames === undefined ? {} : { shortNames: kind.shortNames }),
      ...(kind.categories === undefined ? {} : { categories: kind.categories }),
      ...(kind.virtual === true || kind.readOnly === true
        ? {}
        : { storageVersionHash: storageVersionHash(kind, version) }),
    },
  ];
  for (const [name, as] of Object.entries(kind.subresources ?? {})) {
    const { kind: named, group, version: of, verbs: allowed } = as;
    const elsewhere = group === undefined || of === undefined ? {} : { group, version: of };
    result.push({ name: `${kind.plural}/${name}`, ...base, ...elsewhere, kind: named, verbs: allowed });
  }
  if (kind.statusSubresource === true) {
    result.push({ name: `${kind.plural}/status`, ...base, verbs: ["get", "patch", "update"] });
  }
  return result;
}

/** The name of one object of the kind in texts: the kind in lower case unless it says otherwise. */
export function singularOf(kind: Kind): string {
  return kind.singular ?? kind.kind.toLowerCase();
}

/** The hash by which clients notice a new storage version of a kind (apiserver discovery.StorageVersionHash). */
export function storageVersionHash(kind: Kind, emulated: EmulatedVersion): string {
  const once = emulated.storageVersion(kind.group, kind.kind);
  const stored = once === undefined ? storedApiVersion(kind) : `${kind.group}/${once}`;
  const gvk = stored.includes("/") ? `${stored}/${kind.kind}` : `/${stored}/${kind.kind}`;
  return createHash("sha256").update(gvk).digest().subarray(0, 8).toString("base64");
}

/** The resources of one version of a group, by name; empty when it is not served. */
export function resourcesIn(
  kinds: KindTable,
  group: string,
  version: string,
  emulated: EmulatedVersion,
): readonly ApiResource[] {
  const served = kinds.all().filter((kind) => kind.group === group && kind.versions.includes(version));
  if (served.length === 0) return [];
  const resources = served.flatMap((kind) => resourcesOf(kindInVersion(kind, version), emulated));
  return resources.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `GET /api`. */
export function coreVersions(address: string): object {
  return {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
  };
}

function groupDocument(kinds: KindTable, group: string) {
  const versions = versionsOf(kinds, group).map((version) => ({
    groupVersion: `${group}/${version}`,
    version,
  }));
  return { name: group, versions, preferredVersion: versions[0] };
}

/** `GET /apis`. */
export function groupList(kinds: KindTable): object {
  const groups = groupsOf(kinds).filter((group) => group !== "");
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map((g) => groupDocument(kinds, g)) };
}

/** `GET /apis/GROUP`, or undefined when there is no such group. */
export function oneGroup(kinds: KindTable, group: string): object | undefined {
  if (!kinds.all().some((kind) => kind.group === group)) return undefined;
  return { kind: "APIGroup", apiVersion: "v1", ...groupDocument(kinds, group) };
}

/** `GET /apis/GROUP/VERSION` (`/api/v1` for the core group), or undefined when it is not served. */
export function resourceList(
  kinds: KindTable,
  group: string,
  version: string,
  emulated: EmulatedVersion,
): object | undefined {
  const resources = resourcesIn(kinds, group, version, emulated);
  if (resources.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources,
  };
}

/** `GET /`: every path there is. */
export function rootPaths(kinds: KindTable, version: EmulatedVersion): object {
  const paths = ["/api", "/api/v1", "/apis", "/apis/"];
  for (const group of groupsOf(kinds)) {
    if (group === "") continue;
    paths.push(`/apis/${group}`, ...versionsOf(kinds, group).map((v) => `/apis/${group}/${v}`));
  }
  paths.push("/healthz", "/healthz/ping", "/livez", "/livez/ping", "/metrics", "/openapi/v2");
  if (version.has("openapiV3")) {
    paths.push("/openapi/v3", "/openapi/v3/");
  }
  paths.push("/readyz", "/readyz/ping", "/version");
  return { paths: [...new Set(paths)] };
}

/** `v1.20.2+longshore`: the release that the recordings are of, else the first of its minor version. */
export function gitVersionOf({ text }: EmulatedVersion): string {
  return `v${text}.${text === "1.20" ? 2 : 0}+longshore`;
}

/** `GET /version`: the version whose behaviour the server shows. */
export const versionDocument = (version: EmulatedVersion) => ({
  major: "1",
  minor: String(version.minor),
  ...(version.has("versionOfEmulation")
    ? {
        emulationMajor: "1",
        emulationMinor: String(version.minor),
        minCompatibilityMajor: "1",
        minCompatibilityMinor: String(version.minor - 1),
      }
    : {}),
  gitVersion: gitVersionOf(version),
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "2021-01-13T13:20:00Z",
  goVersion: "none",
  compiler: "none",
  platform: "linux/amd64",
});
