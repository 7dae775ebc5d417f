/** The documents in which clients find out what is served. */
import type { Kind } from "../registry/kind.ts";
import type { KindTable } from "../registry/kind-table.ts";
import type { EmulatedVersion } from "../versions/emulated-version.ts";

interface ApiResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** The resources of a kind: its own and its sub-resources. */
function resourcesOf(kind: Kind): readonly ApiResource[] {
  const base = { singularName: "", namespaced: kind.namespaced, kind: kind.kind };
  const main: ApiResource = {
    name: kind.plural,
    ...base,
    verbs: kind.noDeleteCollection === true ? verbs.filter((v) => v !== "deletecollection") : verbs,
    ...(kind.shortNames === undefined ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories === undefined ? {} : { categories: kind.categories }),
  };
  const result = [main];
  for (const [name, as] of Object.entries(kind.subresources ?? {})) {
    result.push({ name: `${kind.plural}/${name}`, ...base, ...as });
  }
  if (kind.statusSubresource === true) {
    result.push({ name: `${kind.plural}/status`, ...base, verbs: ["get", "patch", "update"] });
  }
  return result;
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
  const versions = [
    ...new Set(
      kinds
        .all()
        .filter((k) => k.group === group)
        .flatMap((k) => k.versions),
    ),
  ].map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions, preferredVersion: versions[0] };
}

/** `GET /apis`. */
export function groupList(kinds: KindTable): object {
  const groups = [...new Set(kinds.all().map((k) => k.group))].filter((group) => group !== "");
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map((g) => groupDocument(kinds, g)) };
}

/** `GET /apis/GROUP`, or undefined when there is no such group. */
export function oneGroup(kinds: KindTable, group: string): object | undefined {
  if (!kinds.all().some((kind) => kind.group === group)) return undefined;
  return { kind: "APIGroup", apiVersion: "v1", ...groupDocument(kinds, group) };
}

/** `GET /apis/GROUP/VERSION` (`/api/v1` for the core group), or undefined when it is not served. */
export function resourceList(kinds: KindTable, group: string, version: string): object | undefined {
  const served = kinds.all().filter((kind) => kind.group === group && kind.versions.includes(version));
  if (served.length === 0) return undefined;
  const resources = served.flatMap(resourcesOf);
  if (group === "") {
    resources.push({
      name: "bindings",
      singularName: "",
      namespaced: true,
      kind: "Binding",
      verbs: ["create"],
    });
  }
  resources.sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources,
  };
}

/** `GET /`: every path there is. */
export function rootPaths(kinds: KindTable): object {
  const paths = new Set(["/api", "/api/v1", "/apis"]);
  for (const { group, versions } of kinds.all()) {
    if (group === "") continue;
    paths.add(`/apis/${group}`);
    for (const version of versions) paths.add(`/apis/${group}/${version}`);
  }
  for (const path of [
    "/healthz",
    "/healthz/ping",
    "/livez",
    "/livez/ping",
    "/openapi/v2",
    "/readyz",
    "/readyz/ping",
    "/version",
  ]) {
    paths.add(path);
  }
  return { paths: [...paths] };
}

/** `v1.20.2+longshore`: the release that the recordings are of, else the first of its minor version. */
export function gitVersionOf({ text }: EmulatedVersion): string {
  return `v${text}.${text === "1.20" ? 2 : 0}+longshore`;
}

/** `GET /version`: the version whose behaviour the server shows. */
export const versionDocument = (version: EmulatedVersion) => ({
  major: "1",
  minor: String(version.minor),
  gitVersion: gitVersionOf(version),
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "2021-01-13T13:20:00Z",
  goVersion: "none",
  compiler: "none",
  platform: "linux/amd64",
});
