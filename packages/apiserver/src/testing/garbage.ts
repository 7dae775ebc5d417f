/**
 * Random requests: paths, queries, headers and bodies combined at random from meaningful parts, so that every kind of
 * answer of the server occurs.
 */
import type { Random } from "@longshore/runtime";

/** One request. The bearer token `t` is the administrator's. */
export interface GarbageRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const words = [
  "",
  "api",
  "apis",
  "v1",
  "apps",
  "storage.k8s.io",
  "policy",
  "namespaces",
  "default",
  "pods",
  "nodes",
  "persistentvolumes",
  "persistentvolumeclaims",
  "storageclasses",
  "volumeattachments",
  "csinodes",
  "configmaps",
  "statefulsets",
  "events",
  "leases",
  "status",
  "scale",
  "binding",
  "eviction",
  "finalize",
  "token",
  "log",
  "resize",
  "ephemeralcontainers",
  "watch",
  "openapi",
  "v2",
  "v3",
  "version",
  "healthz",
  "customresourcedefinitions",
  "apiextensions.k8s.io",
  "rbac.authorization.k8s.io",
  "clusterroles",
  "fuzz.example.com",
  "things",
  "a",
  "b",
  "%",
  "%2e%2e",
  "..",
  "__proto__",
  "constructor",
  "%00",
  "ü",
  "x".repeat(300),
];
const collections = [
  ...["configmaps", "pods", "persistentvolumeclaims", "events", "secrets", "serviceaccounts", "services"].map(
    (r) => `/api/v1/namespaces/default/${r}`,
  ),
  ...["persistentvolumes", "nodes", "namespaces"].map((r) => `/api/v1/${r}`),
  ...["csinodes", "csidrivers", "storageclasses", "volumeattachments"].map(
    (r) => `/apis/storage.k8s.io/v1/${r}`,
  ),
  "/apis/apps/v1/namespaces/default/statefulsets",
  "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
  "/apis/coordination.k8s.io/v1/namespaces/default/leases",
  "/apis/apps/v1/namespaces/default/deployments",
  "/apis/batch/v1/namespaces/default/jobs",
  "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
  "/apis/events.k8s.io/v1/namespaces/default/events",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
  "/apis/authorization.k8s.io/v1/subjectaccessreviews",
  "/apis/authentication.k8s.io/v1/tokenreviews",
  "/apis/fuzz.example.com/v1/namespaces/default/things",
];
const subresources = [
  ...Array<string>(16).fill(""),
  ...["/status", "/status", "/scale", "/eviction", "/binding", "/finalize"],
  ...["/token", "/resize", "/ephemeralcontainers", "/log"],
];
const members = [
  "metadata",
  "spec",
  "status",
  "name",
  "namespace",
  "labels",
  "annotations",
  "finalizers",
  "uid",
  "kind",
  "apiVersion",
  "resourceVersion",
  "ownerReferences",
  "deletionTimestamp",
  "containers",
  "volumes",
  "nodeName",
  "capacity",
  "storage",
  "accessModes",
  "claimRef",
  "resources",
  "requests",
  "drivers",
  "selector",
  "matchLabels",
  "template",
  "replicas",
  "source",
  "data",
  "target",
  "conditions",
  "type",
  "managedFields",
  "fieldsV1",
  "manager",
  "operation",
  "generateName",
  "rules",
  "verbs",
  "roleRef",
  "subjects",
  "versions",
  "schema",
  "openAPIV3Schema",
  "properties",
  "items",
  "x-kubernetes-validations",
  "rule",
  "pattern",
  "default",
  "f:metadata",
  ".",
  "$patch",
  "$retainKeys",
  "$setElementOrder/containers",
  "$deleteFromPrimitiveList/finalizers",
  "op",
  "path",
  "from",
  "value",
  "__proto__",
  "constructor",
  "toString",
];
const scalars = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  "",
  "a",
  "b",
  "default",
  "1Gi",
  "-1Gi",
  "1e999999999",
  "delete",
  "replace",
  "merge",
  "v1",
  "Pod",
  "add",
  "remove",
  "copy",
  "move",
  "test",
  "/metadata/labels",
  "/metadata",
  "/spec/containers/0",
  "2026-01-01T00:00:00Z",
  "9999999999999999999999",
  "ReadWriteOnce",
  "\u0000",
  "\ud800",
];
const queryKeys = [
  "labelSelector",
  "fieldSelector",
  "limit",
  "continue",
  "resourceVersion",
  "resourceVersionMatch",
  "watch",
  "timeoutSeconds",
  "dryRun",
  "fieldManager",
  "propagationPolicy",
  "gracePeriodSeconds",
  "includeObject",
  "pretty",
  "force",
  "fieldValidation",
  "allowWatchBookmarks",
  "sendInitialEvents",
  "orphanDependents",
];
const queryValues = [
  "",
  "1",
  "0",
  "-1",
  "999999999999999",
  "a",
  "a=b",
  "metadata.name=a",
  "Exact",
  "NotOlderThan",
  "All",
  "Orphan",
  "Foreground",
  "true",
  "None",
  "%",
  "((",
  "a in (b",
  "e30",
  "constructor=1",
  "Strict",
  "Warn",
  "x".repeat(200),
];
const types = [
  "application/json",
  "application/yaml",
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
  "application/vnd.kubernetes.protobuf",
  "x/y",
  "",
];
const accepts = [
  "application/json",
  "*/*",
  "application/yaml",
  "x",
  "application/json;as=Table;v=v1;g=meta.k8s.io",
  "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
  "application/vnd.kubernetes.protobuf",
  "application/vnd.kubernetes.protobuf, application/json",
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
  "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
  "application/json;q=0.5, application/yaml;q=x, */*",
];

function draw<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length, "draw")] as T;
}

function aValue(random: Random, depth: number): unknown {
  const form = random.below(depth > 5 ? 2 : 6, "form");
  if (form < 2) return draw(random, scalars);
  const size = random.below(4, "size");
  if (form === 2) return Array.from({ length: size }, () => aValue(random, depth + 1));
  // Made from pairs, so that a name such as __proto__ is a member as JSON.parse makes it.
  return Object.fromEntries(
    Array.from({ length: size }, () => [draw(random, members), aValue(random, depth + 1)]),
  );
}

const methods = [
  "GET",
  "POST",
  "POST",
  "POST",
  "PUT",
  "PATCH",
  "PATCH",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "PROPFIND",
];

/** Mostly a path on which the method means something. */
function aPath(random: Random, method: string): string {
  if (random.below(8, "path") === 0) {
    return `/${Array.from({ length: random.below(8, "parts") }, () => draw(random, words)).join("/")}`;
  }
  const collection = draw(random, collections);
  if (method === "POST" && random.below(4, "named") > 0) return collection;
  return `${collection}/a${draw(random, subresources)}`;
}

const seeds: readonly object[] = [
  { metadata: { name: "a" }, data: { a: "1" } },
  {
    metadata: { name: "a" },
    spec: { containers: [{ name: "a", image: "i", env: [{ name: "A" }] }], volumes: [{ name: "v" }] },
  },
  {
    metadata: { name: "a" },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/a" } },
  },
  {
    metadata: { name: "a" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  },
  { metadata: { name: "a" }, spec: { drivers: [{ name: "d", nodeID: "n", topologyKeys: null }] } },
  { metadata: { name: "a" }, spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "a" } } },
  {
    metadata: { name: "a" },
    spec: {
      replicas: 1,
      serviceName: "a",
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "a", image: "i" }] } },
    },
  },
  { metadata: { name: "a" }, target: { kind: "Node", name: "a" } },
  {
    metadata: { name: "a" },
    provisioner: "d",
    allowedTopologies: [{ matchLabelExpressions: [{ key: "a", values: ["b"] }] }],
  },
  {
    metadata: { name: "things.fuzz.example.com" },
    spec: {
      group: "fuzz.example.com",
      scope: "Namespaced",
      names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: {
            openAPIV3Schema: {
              type: "object",
              properties: {
                spec: {
                  type: "object",
                  properties: { source: { type: "string", pattern: "^a*$", default: "a" } },
                },
                status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
              },
            },
          },
        },
      ],
    },
  },
  { apiVersion: "fuzz.example.com/v1", kind: "Thing", metadata: { name: "a" }, spec: { source: "a" } },
  { metadata: { name: "a" }, rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] },
  {
    metadata: { name: "a" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "a" },
    subjects: [{ kind: "User", name: "a", apiGroup: "rbac.authorization.k8s.io" }],
  },
  { spec: { user: "a", groups: ["b"], resourceAttributes: { verb: "get", resource: "pods" } } },
  { spec: { token: "t" } },
];

/** A good object in which some values are others. */
function mutated(random: Random, value: unknown): unknown {
  if (random.below(12, "change") === 0) return aValue(random, 3);
  if (Array.isArray(value)) return value.map((item) => mutated(random, item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, mutated(random, member)]);
  if (random.below(6, "more") === 0) entries.push([draw(random, members), aValue(random, 2)]);
  return Object.fromEntries(entries);
}

/** Which of the seeds is an object of the collection, by the last part of its path. */
const seedOf: Readonly<Record<string, number>> = {
  configmaps: 0,
  secrets: 0,
  serviceaccounts: 0,
  namespaces: 0,
  nodes: 0,
  pods: 1,
  persistentvolumes: 2,
  persistentvolumeclaims: 3,
  csinodes: 4,
  volumeattachments: 5,
  statefulsets: 6,
  deployments: 6,
  storageclasses: 8,
  customresourcedefinitions: 9,
  things: 10,
  clusterroles: 11,
  rolebindings: 12,
  subjectaccessreviews: 13,
  selfsubjectaccessreviews: 13,
  tokenreviews: 14,
};

/** Often an object of the kind that the path is about, and as it should be but for a value or two. */
function aSeed(random: Random, path: string): unknown {
  const collection = path.split("/").find((part) => Object.hasOwn(seedOf, part) && part !== "namespaces");
  const fitting = collection === undefined ? undefined : seeds[seedOf[collection] ?? 0];
  if (fitting === undefined || random.below(4, "fitting") === 0) return mutated(random, draw(random, seeds));
  return random.below(2, "sound") === 0 ? fitting : mutated(random, fitting);
}

function aBody(random: Random, path: string): Buffer {
  switch (random.below(12, "body")) {
    case 0:
      return Buffer.alloc(0);
    case 1:
      return Buffer.from(Array.from({ length: random.below(64, "length") }, () => random.below(256, "byte")));
    case 2:
      return Buffer.concat([
        Buffer.from("k8s\0"),
        Buffer.from(Array.from({ length: random.below(64, "length") }, () => random.below(256, "byte"))),
      ]);
    case 3:
      return Buffer.from(JSON.stringify(aValue(random, 0)) ?? "");
    case 4:
      return Buffer.from(
        JSON.stringify([
          mutated(random, { op: draw(random, scalars), path: draw(random, scalars), value: 1 }),
        ]),
      );
    default:
      return Buffer.from(JSON.stringify(aSeed(random, path)) ?? "");
  }
}

/** The next piece of garbage. */
export function garbage(random: Random): GarbageRequest {
  const pairs = Array.from(
    { length: random.below(3, "pairs") },
    () => `${draw(random, queryKeys)}=${draw(random, queryValues)}`,
  );
  const method = draw(random, methods);
  const path = aPath(random, method);
  const chance = (oneIn: number, what: string) => random.below(oneIn, what) === 0;
  const headers = {
    authorization: chance(50, "token") ? "Bearer x" : "Bearer t",
    accept: chance(4, "accept") ? draw(random, accepts) : "*/*",
    "content-type":
      method === "PATCH"
        ? draw(random, types.slice(2, 6))
        : chance(4, "type")
          ? draw(random, types)
          : "application/json",
    ...(chance(60, "user") ? { "impersonate-user": draw(random, ["a", "", "system:node:a"]) } : {}),
    ...(chance(90, "group") ? { "impersonate-group": draw(random, ["system:masters", "b"]) } : {}),
    ...(chance(20, "encoding") ? { "accept-encoding": draw(random, ["gzip", "br", "gzip;q=0, x"]) } : {}),
  };
  return {
    method,
    url: `${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`,
    headers,
    body: aBody(random, path),
  };
}
