/**
 * Forms of requests, the usual ones and the odd, with what each asks leave for: written out by hand from the rules of
 * apiserver endpoints/request RequestInfo, and not with the parser that is tested against it.
 */

/** A kind that is requested, with an object of the name `a`, in the namespace `team` if it is namespaced. */
export interface FormKind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Its sub-resources, `status` among them. */
  readonly subresources: readonly string[];
}

/** The right that a request needs. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** With the sub-resource: `pods/status`. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** A path, and what it means without its method. */
export interface PathForm {
  readonly path: string;
  readonly means: Omit<Right, "verb">;
  /** The verb that the path itself says. */
  readonly verb?: "watch" | "proxy";
  /** The methods with which something is served there. */
  readonly methods: readonly string[];
}

/** Methods that are sent to every path. */
export const formMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"] as const;

type Where = "collection" | "object" | "nowhere";
type Template = readonly [
  path: string,
  means: { ns?: string; name?: string; sub?: string; res?: string; group?: string; verb?: "watch" | "proxy" },
  where: Where,
];

const ns = "team";
const [watch, proxy] = ["watch", "proxy"] as const;

/** `ROOT` is `/api/v1` or `/apis/GROUP/VERSION`, `RES` the plural name. */
const inNamespace: readonly Template[] = [
  ["ROOT/namespaces/team/RES", { ns }, "collection"],
  ["ROOT/namespaces/team/RES/", { ns }, "collection"],
  ["ROOT/namespaces/team/RES//", { ns }, "collection"],
  ["ROOT/namespaces%2Fteam/RES", { ns }, "collection"],
  ["ROOT/namespaces/te%61m/RES", { ns }, "collection"],
  ["ROOT/namespaces/team/RES/a", { ns, name: "a" }, "object"],
  ["ROOT/namespaces/team/RES/a/", { ns, name: "a" }, "object"],
  ["ROOT/namespaces/team/RES%2Fa", { ns, name: "a" }, "object"],
  ["ROOT/namespaces/team/RES/%61", { ns, name: "a" }, "object"],
  ["ROOT/watch/namespaces/team/RES", { ns, verb: watch }, "collection"],
  ["ROOT/watch/namespaces/team/RES/a", { ns, name: "a", verb: watch }, "object"],
  ["ROOT/w%61tch/namespaces/team/RES/a", { ns, name: "a", verb: watch }, "object"],
  ["ROOT/watch%2Fnamespaces/team/RES/a", { ns, name: "a", verb: watch }, "object"],
  ["ROOT/watch/namespaces/team/RES/a/status", { ns, name: "a", sub: "status", verb: watch }, "nowhere"],
  ["ROOT/watch/namespaces/team/RES/a/token", { ns, name: "a", sub: "token", verb: watch }, "nowhere"],
  ["ROOT/watch/namespaces/team/RES/a/binding", { ns, name: "a", sub: "binding", verb: watch }, "nowhere"],
  ["ROOT/proxy/namespaces/team/RES", { ns, verb: proxy }, "nowhere"],
  ["ROOT/proxy/namespaces/team/RES/a", { ns, name: "a", verb: proxy }, "nowhere"],
  ["ROOT/proxy/namespaces/team/RES/a/status", { ns, name: "a", verb: proxy }, "nowhere"],
  ["ROOT/namespaces/team/RES/a/nope", { ns, name: "a", sub: "nope" }, "nowhere"],
  ["ROOT/namespaces/team/RES/a/status/more", { ns, name: "a", sub: "status" }, "nowhere"],
  ["ROOT/namespaces/team/RES/a/proxy/x/y", { ns, name: "a", sub: "proxy" }, "nowhere"],
  ["ROOT/namespaces/team/RES/../RES/a", { ns, name: "..", sub: "RES" }, "nowhere"],
  ["ROOT/namespaces/team/RES/%2e%2e/RES/a", { ns, name: "..", sub: "RES" }, "nowhere"],
  ["ROOT/namespaces/other/../team/RES/a", { ns: "other", res: "..", name: "team", sub: "RES" }, "nowhere"],
  ["ROOT/namespaces/team/RES//status", { ns, sub: "status" }, "nowhere"],
  ["ROOT/namespaces/team/watch/RES", { ns, res: "watch", name: "RES" }, "nowhere"],
  ["ROOT/namespaces/team/status/RES", { ns, res: "namespaces", name: "team", sub: "status" }, "nowhere"],
  ["/ROOT/namespaces/team/RES/a", { ns, name: "a" }, "nowhere"],
  ["ROOT/namespaces/team/RES.GROUP/a", { ns, res: "RES.GROUP", name: "a" }, "nowhere"],
  ["/api/v1/namespaces/team/RES.GROUP", { ns, group: "", res: "RES.GROUP" }, "nowhere"],
  ["/api/v1/namespaces/team/RES.GROUP/a", { ns, group: "", res: "RES.GROUP", name: "a" }, "nowhere"],
];

const inCluster: readonly Template[] = [
  ["ROOT/RES", {}, "collection"],
  ["ROOT/RES/", {}, "collection"],
  ["ROOT/RES/a", { name: "a" }, "object"],
  ["ROOT/RES%2Fa", { name: "a" }, "object"],
  ["ROOT/watch/RES", { verb: watch }, "collection"],
  ["ROOT/watch/RES/a", { name: "a", verb: watch }, "object"],
  ["ROOT/watch/RES/a/status", { name: "a", sub: "status", verb: watch }, "nowhere"],
  ["ROOT/proxy/RES/a", { name: "a", verb: proxy }, "nowhere"],
  ["ROOT/RES/a/status/more", { name: "a", sub: "status" }, "nowhere"],
  ["/ROOT/RES/a", { name: "a" }, "nowhere"],
  ["/api/v1/RES.GROUP/a", { group: "", res: "RES.GROUP", name: "a" }, "nowhere"],
];

/** A namespace that is left empty is none; the reference lists all there, and nothing is served here. */
const withEmptyNamespace: readonly Template[] = [
  ["ROOT/namespaces//RES", {}, "nowhere"],
  ["ROOT/namespaces//RES/a", { name: "a" }, "nowhere"],
];

/** All forms of requests for a kind. */
export function pathForms(kind: FormKind): readonly PathForm[] {
  const subresources = kind.subresources.flatMap((sub): Template[] => [
    [`ROOT/namespaces/team/RES/a/${sub}`, { ns, name: "a", sub }, kind.namespaced ? "object" : "nowhere"],
    [`ROOT/RES/a/${sub}`, { name: "a", sub }, kind.namespaced ? "nowhere" : "object"],
  ]);
  return [...inNamespace, ...inCluster, ...withEmptyNamespace, ...subresources].flatMap((template) => {
    const [path, { ns: namespace, name, sub, res = "RES", group = kind.group, verb }, where] = template;
    // For the core group `RES.GROUP` is not a separate form; `namespaces/a/nope` is the resource nope in a.
    if (kind.group === "" && path.includes("GROUP")) return [];
    if (
      kind.plural === "namespaces" &&
      (path.includes("namespaces//") || /(ROOT|watch)\/RES\/a\/(?!status|finalize)/.test(path))
    )
      return [];
    const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
    const said = (text: string) =>
      text.replace("ROOT", root).replaceAll("RES", kind.plural).replaceAll("GROUP", kind.group);
    const resource = said(res);
    // A namespace is in itself.
    const inside = namespace ?? (resource === "namespaces" ? name : undefined);
    return [
      {
        path: said(path),
        means: {
          group,
          resource: sub === undefined ? resource : `${resource}/${said(sub)}`,
          ...(inside === undefined ? {} : { namespace: inside }),
          ...(name === undefined ? {} : { name: said(name) }),
        },
        ...(verb === undefined ? {} : { verb }),
        methods: methodsServed(kind, { namespace, verb, sub }, where),
      },
    ];
  });
}

function methodsServed(
  kind: FormKind,
  {
    namespace,
    verb,
    sub,
  }: { namespace: string | undefined; verb: string | undefined; sub: string | undefined },
  where: Where,
): readonly string[] {
  const isAcross = kind.namespaced && namespace === undefined && where === "collection";
  const isInScope = kind.namespaced === (namespace !== undefined) || isAcross;
  if (where === "nowhere" || !isInScope) return [];
  if (verb !== undefined || isAcross) return ["GET", "HEAD"];
  // Which of these a sub-resource has is its own affair.
  if (sub !== undefined) return ["GET", "HEAD", "POST", "PUT", "PATCH"];
  return where === "collection"
    ? ["GET", "HEAD", "POST", "DELETE"]
    : ["GET", "HEAD", "PUT", "PATCH", "DELETE"];
}

/** The verb of a request. @param asksToWatch whether `watch=1` is in its query */
export function verbOfForm(form: PathForm, method: string, asksToWatch = false): string {
  if (form.verb !== undefined) return form.verb;
  // What a path selects by itself; a namespace that stands for itself has its name too.
  const isNamed = form.means.name !== undefined;
  const verbs: Readonly<Record<string, readonly [ofMany: string, ofOne: string]>> = {
    GET: [asksToWatch ? "watch" : "list", "get"],
    HEAD: [asksToWatch ? "watch" : "list", "get"],
    POST: ["create", "create"],
    PUT: ["update", "update"],
    PATCH: ["patch", "patch"],
    DELETE: ["deletecollection", "delete"],
  };
  return verbs[method]?.[isNamed ? 1 : 0] ?? "";
}
