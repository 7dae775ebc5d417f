/** Random requests of users with one right each: often nearly what the right is for, and in every odd form. */
import type { KubeObject } from "@longshore/kube";
import type { Random } from "@longshore/runtime";
import { type FuzzKind, fuzzKinds, fuzzObject } from "./kinds.ts";
import type { FuzzRight } from "./oracle.ts";

/** One request. */
export interface FuzzRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What is stored where, for bodies that come near it. */
export type Stored = (of: FuzzKind, namespace: string, name: string) => KubeObject | undefined;

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const namespaces = ["team", "other"];
const names = ["a", "b"];

export function draw<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length, "draw")] as T;
}

const chance = (random: Random, oneIn: number) => random.below(oneIn, "chance") === 0;

/** One right, of a verb on a kind or a part of it, with or without a namespace and a name. */
export function aRight(random: Random): FuzzRight {
  const of = draw(random, fuzzKinds);
  const part = chance(random, 3) && of.subresources.length > 0 ? `/${draw(random, of.subresources)}` : "";
  const verb =
    part !== "" && chance(random, 2) ? "create" : draw(random, chance(random, 12) ? ["*", "proxy"] : verbs);
  return {
    verb,
    group: chance(random, 20) ? draw(random, ["", "apps", "authorization.k8s.io"]) : of.group,
    resource: chance(random, 12) ? "*" : `${of.plural}${part}`,
    ...(chance(random, 2) ? { namespace: draw(random, namespaces) } : {}),
    ...(chance(random, 4) ? { name: draw(random, names) } : {}),
  };
}

/** One request of a user with the right. */
export function aRequest(random: Random, right: FuzzRight, stored: Stored): FuzzRequest {
  const [plural = "", part] = right.resource.split("/");
  const meant = fuzzKinds.find((kind) => kind.plural === plural && kind.group === right.group);
  const of = meant === undefined || chance(random, 10) ? draw(random, fuzzKinds) : meant;
  const namespace =
    right.namespace !== undefined && !chance(random, 8) ? right.namespace : draw(random, namespaces);
  const name = right.name !== undefined && !chance(random, 8) ? right.name : draw(random, [...names, "new"]);
  const method = aMethod(random, right.verb);
  const isOfMany =
    method === "POST" ? part === undefined : ["list", "watch", "deletecollection"].includes(right.verb);
  const isNamed = chance(random, 8) ? !isOfMany : isOfMany === false;
  const sub =
    part !== undefined && !chance(random, 6) ? part : chance(random, 8) ? aPart(random, of) : undefined;
  const segments = [
    ...(of.group === "" ? ["api"] : ["apis", of.group]),
    chance(random, 40) ? "v1beta1" : of.version,
    ...(right.verb === "watch" && chance(random, 2) ? ["watch"] : []),
    ...(chance(random, 12) ? [draw(random, ["watch", "proxy"])] : []),
    ...(of.namespaced !== chance(random, 8) ? ["namespaces", namespace] : []),
    chance(random, 20) ? `${of.plural}.${of.group}` : of.plural,
    ...(isNamed || sub !== undefined ? [name] : []),
    ...(sub === undefined ? [] : [sub]),
    ...(chance(random, 30) ? [draw(random, ["x", "status", "..", ".", ""])] : []),
  ];
  const url = `${bent(random, `/${segments.join("/")}`)}${aQuery(random, right, name)}`;
  const patch =
    method === "PATCH" ? draw(random, ["merge-patch", "json-patch", "strategic-merge-patch", "apply"]) : "";
  return {
    method,
    url,
    headers: {
      accept: draw(random, [
        "application/json",
        "application/json",
        "*/*",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
      ]),
      "content-type":
        patch === "apply"
          ? "application/apply-patch+yaml"
          : patch === ""
            ? "application/json"
            : `application/${patch}+json`,
      ...(chance(random, 10) ? { "x-http-method-override": draw(random, methods) } : {}),
      ...(chance(random, 80)
        ? { "impersonate-user": draw(random, ["admin", "user-1", "system:serviceaccount:team:a"]) }
        : {}),
      ...(chance(random, 150) ? { "impersonate-group": "system:masters" } : {}),
    },
    body: JSON.stringify(aBody(random, { of, namespace, name, sub, method, patch }, stored)) ?? "",
  };
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

function aMethod(random: Random, verb: string): string {
  if (chance(random, 6)) return draw(random, methods);
  const own = { create: "POST", update: "PUT", patch: "PATCH", delete: "DELETE", deletecollection: "DELETE" };
  return Object.hasOwn(own, verb)
    ? own[verb as keyof typeof own]
    : verb === "*"
      ? draw(random, methods)
      : "GET";
}

const aPart = (random: Random, of: FuzzKind): string =>
  draw(random, [...of.subresources, "status", "scale", "token", "binding", "finalize", "proxy", "nope"]);

/** The path with something odd in it, mostly not. */
function bent(random: Random, path: string): string {
  const at = random.below(path.length, "at");
  switch (random.below(24, "bend")) {
    case 0:
      return `${path.slice(0, at)}%${path.charCodeAt(at).toString(16)}${path.slice(at + 1)}`;
    case 1:
      return path.replaceAll("/", (slash, i: number) => (i > 0 && chance(random, 3) ? "%2F" : slash));
    case 2:
      return path.replaceAll("/", (slash) =>
        chance(random, 6) ? draw(random, ["//", "/./", "/x/../", "/%2e%2e/"]) : slash,
      );
    case 3:
      return `${path}${draw(random, ["/", "//", "/.", "/..", ";a=b", "%20", "%00", "#x"])}`;
    case 4:
      return `${draw(random, ["/", "//", "https://other.example", "/x/.."])}${path}`;
    default:
      return path;
  }
}

function aQuery(random: Random, right: FuzzRight, name: string): string {
  const selectors = [
    `metadata.name=${name}`,
    `metadata.name%3D%3D${name}`,
    `metadata.name!=${name}`,
    `metadata.namespace!=x%5C,metadata.name%3D${name}`,
    `metadata.namespace!=x,metadata.name%3D${name}`,
    `%20metadata.name%3D${name}`,
    `metadata.name=${name}&fieldSelector=metadata.name!=${name}`,
  ];
  const all = [
    ...["watch=1", "watch=true", "watch=0", "watch=False", "watch", "watch=0&watch=1", "watch=1&watch=0"],
    ...[
      "dryRun=All",
      "force=true",
      "limit=1",
      "resourceVersion=0",
      "labelSelector=app",
      "propagationPolicy=Orphan",
    ],
    ...["gracePeriodSeconds=0", "includeObject=Object", "allowWatchBookmarks=1", "pretty=1"],
  ];
  const pairs = ["fieldManager=fuzz"];
  if (right.verb === "watch" && !chance(random, 3)) pairs.push("watch=1");
  if ((right.name !== undefined && chance(random, 2)) || chance(random, 10)) {
    pairs.push(`fieldSelector=${draw(random, selectors)}`);
  }
  while (chance(random, 3)) pairs.push(draw(random, all));
  return `?${pairs.join("&")}`;
}

interface BodyOf {
  readonly of: FuzzKind;
  readonly namespace: string;
  readonly name: string;
  readonly sub: string | undefined;
  readonly method: string;
  readonly patch: string;
}

function aBody(random: Random, request: BodyOf, stored: Stored): unknown {
  const { of, namespace, name, sub, method, patch } = request;
  if (method === "DELETE") return chance(random, 2) ? undefined : { gracePeriodSeconds: 0 };
  if (method === "GET" || method === "HEAD") return undefined;
  const there = stored(of, namespace, name);
  if (method === "POST" && sub !== undefined) return aPartBody(random, sub);
  if (patch === "json-patch") return [{ op: "add", path: draw(random, jsonPaths), value: { fuzz: "1" } }];
  const object =
    there === undefined || method === "POST" ? fuzzObject(of, namespace, name) : withoutMarks(there);
  if (method === "POST")
    return chance(random, 6)
      ? object
      : fuzzObject(of, namespace, chance(random, 3) ? name : `n${random.below(1000, "n")}`);
  const changed = {
    ...object,
    ...draw(random, changes),
    metadata: { ...object.metadata, ...draw(random, metadata) },
  };
  if (method === "PUT" || patch === "apply") {
    if (sub === "scale")
      return { kind: "Scale", apiVersion: "autoscaling/v1", metadata: { name }, spec: { replicas: 7 } };
    const { managedFields: _, ...rest } = changed.metadata as Record<string, unknown>;
    return { ...changed, metadata: rest };
  }
  return { metadata: draw(random, metadata), ...draw(random, changes) };
}

const jsonPaths = ["/metadata/labels", "/metadata/annotations", "/status", "/data", "/spec"];
const metadata = [
  { labels: { fuzz: "1", app: "a" } },
  { finalizers: ["x.example.com/f"] },
  { finalizers: null },
  { labels: { app: "a" }, annotations: { fuzz: "2" } },
];
const changes = [
  {},
  { status: { phase: "Pending", replicas: 3, conditions: [] } },
  { data: { key: "b3RoZXI=" } },
  { spec: { replicas: 5 } },
  { rules: [] },
];

/** Bodies carry no mark of what is stored: an answer that repeats them shows nothing. */
function withoutMarks(object: KubeObject): KubeObject {
  const { annotations: _, ...rest } = object.metadata ?? {};
  return { ...object, metadata: rest };
}

function aPartBody(random: Random, sub: string): unknown {
  if (sub === "binding") return { target: { kind: "Node", name: "a" } };
  if (sub === "eviction") return chance(random, 4) ? { deleteOptions: { dryRun: ["All"] } } : {};
  return { spec: { expirationSeconds: 600 } };
}
