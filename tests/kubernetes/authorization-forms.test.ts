/**
 * Requests in every form, the odd ones too, sent to the real kube-apiserver and to ours as users with different rights: both
 * answer with the same code, for the same reason. What differs on purpose is listed, and each entry must be needed.
 */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aCustomKind } from "../../packages/apiserver/src/testing/custom-kinds.ts";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import {
  type FormKind,
  formMethods,
  type PathForm,
  pathForms,
} from "../../packages/apiserver/src/testing/request-forms.ts";
import { adminToken, serveForTest, type TestServer } from "../../packages/apiserver/src/testing/serve.ts";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";

const users = ["nobody", "reader", "watcher", "writer", "teamadmin"];
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const everything = { apiGroups: ["*"], resources: ["*"] };
const roles: Readonly<Record<string, readonly string[]>> = {
  reader: ["get", "list", "watch"],
  watcher: ["watch"],
  writer: ["create", "update", "patch", "delete", "deletecollection"],
};

interface Tested extends FormKind {
  readonly object: Record<string, unknown> & { readonly metadata: { readonly name: string } };
}
const template = { metadata: { labels: { app: "a" } }, spec: { containers: [{ name: "c", image: "i" }] } };
const kind = (
  group: string,
  name: string,
  plural: string,
  rest: object,
  more: Partial<FormKind> = {},
): Tested => ({
  ...{ group, version: "v1", plural, namespaced: true, subresources: [] },
  object: { apiVersion: group === "" ? "v1" : `${group}/v1`, kind: name, metadata: { name: "a" }, ...rest },
  ...more,
});
const ofCluster = { namespaced: false };
const kinds: readonly Tested[] = [
  kind("", "Namespace", "namespaces", {}, { ...ofCluster, subresources: ["status", "finalize"] }),
  kind("", "Pod", "pods", { spec: template.spec }, { subresources: ["status", "binding", "eviction"] }),
  kind("", "Node", "nodes", {}, { ...ofCluster, subresources: ["status"] }),
  kind("", "ServiceAccount", "serviceaccounts", {}, { subresources: ["token"] }),
  kind(
    "apps",
    "Deployment",
    "deployments",
    { spec: { replicas: 0, selector: { matchLabels: { app: "a" } }, template } },
    { subresources: ["status", "scale"] },
  ),
  kind("storage.k8s.io", "StorageClass", "storageclasses", { provisioner: "d" }, ofCluster),
  kind("x.example.com", "Thing", "things", { spec: { replicas: 1 } }, { subresources: ["status"] }),
  kind(
    "x.example.com",
    "Gadget",
    "gadgets",
    { spec: { replicas: 1 } },
    { ...ofCluster, subresources: ["status"] },
  ),
];
const isCustom = ({ group }: FormKind) => group === "x.example.com";
const collectionOf = ({ group, version, plural, namespaced }: FormKind) =>
  `${group === "" ? "/api" : `/apis/${group}`}/${version}${namespaced ? "/namespaces/team" : ""}/${plural}`;

/** Where ours refuses what the real one serves, or with another code, and why. */
const differences: readonly {
  readonly why: string;
  readonly is: (of: FormKind, form: PathForm, method: string, real: number, own: number) => boolean;
}[] = [
  {
    why: "a watch of custom resources is a GET of what there is here; the reference looks at the word in the path alone",
    is: (of, form, method, real, own) =>
      isCustom(of) &&
      form.verb === "watch" &&
      real === 200 &&
      (own === 404 || (own === 405 && method !== "GET")),
  },
  {
    why: "a sub-resource of a custom resource has no path below watch; the reference has one with no method",
    is: (of, form, _method, real, own) =>
      isCustom(of) && form.verb === "watch" && real === 405 && own === 404,
  },
  {
    why: "a custom resource is not created at the path of another",
    is: (of, form, method, real, own) =>
      isCustom(of) && method === "POST" && form.means.name !== undefined && real === 201 && own === 405,
  },
  {
    why: "a collection of custom resources cannot be updated: 405 here, 400 there",
    is: (of, form, method, real, own) =>
      isCustom(of) &&
      /^P(UT|ATCH)$/.test(method) &&
      form.means.name === undefined &&
      real === 400 &&
      own !== 400,
  },
  {
    why: "what follows a sub-resource of a custom resource is not passed over here",
    is: (of, form, _method, _real, own) => isCustom(of) && form.path.endsWith("/status/more") && own === 404,
  },
  {
    why: "the old word proxy before a custom resource is no path here; 405 there",
    is: (of, form, _method, real, own) =>
      isCustom(of) && form.verb === "proxy" && real === 405 && own === 404,
  },
  {
    why: "nothing is served at a path with an empty part",
    is: (_of, form, _method, _real, own) => /.\/\/+[^/]/.test(form.path) && own === 404,
  },
  {
    why: "nothing is passed on to nodes and pods",
    is: (_of, form, _method, _real, own) => form.path.includes("/proxy/x") && own === 404,
  },
];

interface Side {
  readonly to: HttpsConnections;
  readonly token: (user: string) => string;
}
let plane: ControlPlane;
let server: TestServer;
let real: Side;
let own: Side;

beforeAll(async () => {
  plane = await startControlPlane({ users: users.map((name) => ({ name })) });
  server = await serveForTest({
    controllers: false,
    emulatedVersion: "1.20",
    tokens: [
      { token: adminToken, user: { name: "admin", groups: ["system:masters"] } },
      ...users.map((name) => ({ token: name, user: { name, groups: [] } })),
    ],
  });
  real = {
    to: new HttpsConnections(plane.url, { ca: await readFile(plane.caPath, "utf8") }),
    token: (user) => (user === "admin" ? plane.adminToken : (plane.tokens[user] ?? "")),
  };
  own = {
    to: new HttpsConnections(server.front.url, { ca: server.authority.certificate }),
    token: (user) => (user === "admin" ? adminToken : user),
  };
  for (const side of [real, own]) await prepare(side);
}, 120_000);
afterAll(async () => {
  real?.to.close();
  own?.to.close();
  await server?.stop();
  await plane?.stop();
});

async function prepare(side: Side): Promise<void> {
  const post = async (path: string, body: object) => {
    const answer = await send(side, "admin", "POST", path, body);
    if (answer.status !== 201 && answer.status !== 409)
      throw new Error(`POST ${path}: ${JSON.stringify(answer)}`);
  };
  const bind = (name: string, where: string, role: string, of: string) =>
    post(`${rbac}${where}/${of}`, {
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name }],
    });
  for (const name of ["team", "other"]) await post("/api/v1/namespaces", { metadata: { name } });
  for (const [name, verbs] of Object.entries(roles)) {
    await post(`${rbac}/clusterroles`, { metadata: { name }, rules: [{ ...everything, verbs }] });
    await bind(name, "", name, "clusterrolebindings");
  }
  await post(`${rbac}/clusterroles`, { metadata: { name: "all" }, rules: [{ ...everything, verbs: ["*"] }] });
  await bind("teamadmin", "/namespaces/team", "all", "rolebindings");
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await post(definitions, aCustomKind("things", "Thing", "Namespaced"));
  await post(definitions, aCustomKind("gadgets", "Gadget", "Cluster"));
  for (const of of kinds) {
    await eventually(`${of.plural} are served`, async () => {
      const answer = await send(side, "admin", "POST", collectionOf(of), of.object);
      return answer.status === 201 || answer.status === 409 || undefined;
    });
  }
}

interface Outcome {
  readonly status: number;
  readonly reason: string;
}

/** Sends it; of a stream only the beginning is awaited. */
async function send(
  side: Side,
  user: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Outcome> {
  const response = await side.to.open({
    method,
    path,
    headers: {
      authorization: `Bearer ${side.token(user)}`,
      accept: "application/json",
      "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
      "x-http-method-override": "GET",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const status = response.statusCode ?? 0;
  if (status === 200) {
    response.destroy();
    return { status, reason: "" };
  }
  let text = "";
  for await (const chunk of response) text += chunk;
  const json = text.startsWith("{") ? (JSON.parse(text) as { reason?: string }) : {};
  return { status, reason: json.reason ?? "" };
}

/** What the request carries, where it is to succeed when it may. */
function bodyOf(of: Tested, form: PathForm, method: string): unknown {
  if (method === "PATCH") return { metadata: { labels: { changed: "yes" } } };
  if (method !== "POST" && method !== "PUT") return undefined;
  const [, sub] = form.means.resource.split("/");
  if (method === "POST" && sub === "binding")
    return { metadata: { name: "a" }, target: { kind: "Node", name: "a" } };
  if (method === "POST" && sub === "eviction") {
    return { apiVersion: "policy/v1beta1", kind: "Eviction", metadata: { name: "a", namespace: "team" } };
  }
  if (method === "POST" && sub === "token") return { spec: { expirationSeconds: 600 } };
  if (sub === "scale")
    return {
      apiVersion: "autoscaling/v1",
      kind: "Scale",
      metadata: { name: "a", namespace: "team" },
      spec: { replicas: 0 },
    };
  return { ...of.object, metadata: { name: method === "POST" ? "new" : "a" } };
}

const needed = new Set<string>();

describe.each(kinds)("$plural", (of) => {
  it("are answered as by the real server, for every form of request and every user", async () => {
    const found: string[] = [];
    let turn = 0;
    for (const form of pathForms(of)) {
      for (const method of formMethods) {
        const isWrite = ["POST", "PUT", "PATCH", "DELETE"].includes(method);
        for (const query of isWrite ? ["?dryRun=All"] : ["", ...(method === "GET" ? ["?watch=1"] : [])]) {
          for (const user of ["admin", users[turn++ % users.length] as string]) {
            const body = bodyOf(of, form, method);
            const [there, here] = await Promise.all(
              [real, own].map((side) => send(side, user, method, `${form.path}${query}`, body)),
            );
            const same =
              there?.status === here?.status && (method === "HEAD" || there?.reason === here?.reason);
            if (same || there === undefined || here === undefined) continue;
            const listed = differences.find(({ is }) => is(of, form, method, there.status, here.status));
            if (listed !== undefined) needed.add(listed.why);
            else
              found.push(
                `${user} ${method} ${form.path}${query}: ${shown(there)} there, ${shown(here)} here`,
              );
          }
        }
      }
    }
    expect(found).toEqual([]);
  });
});

it("differs on purpose in nothing that it does not differ in", () => {
  expect(differences.map(({ why }) => why).filter((why) => !needed.has(why))).toEqual([]);
});

const shown = ({ status, reason }: Outcome) => `${status} ${reason}`.trim();

describe("namespaces that go, or may not", () => {
  it.each(["default", "kube-system", "kube-public"])("%s may not be deleted", async (name) => {
    const path = `/api/v1/namespaces/${name}`;
    const outcomes = await Promise.all([real, own].map((side) => send(side, "admin", "DELETE", path)));
    expect(outcomes).toEqual([real, own].map(() => ({ status: 403, reason: "Forbidden" })));
  });

  it("take nothing new, but let the rest be changed and deleted", async () => {
    const pod = { ...kinds[1]?.object, metadata: { name: "p" } };
    const inGoing = "/api/v1/namespaces/going";
    const steps: readonly (readonly [method: string, path: string, body?: object])[] = [
      ["POST", "/api/v1/namespaces", { metadata: { name: "going" } }],
      ["POST", `${inGoing}/pods`, pod],
      ["POST", `${inGoing}/serviceaccounts`, { metadata: { name: "x" } }],
      ["DELETE", inGoing],
      ["POST", `${inGoing}/pods`, { ...pod, metadata: { name: "q" } }],
      ["POST", `${inGoing}/configmaps`, { metadata: { name: "q" } }],
      ["POST", `${inGoing}/pods/p/binding`, { metadata: { name: "p" }, target: { kind: "Node", name: "a" } }],
      [
        "POST",
        `${inGoing}/pods/p/eviction`,
        { apiVersion: "policy/v1beta1", kind: "Eviction", metadata: { name: "p", namespace: "going" } },
      ],
      ["POST", `${inGoing}/serviceaccounts/x/token`, { spec: { expirationSeconds: 600 } }],
      ["PATCH", `${inGoing}/pods/p`, { metadata: { labels: { a: "b" } } }],
      ["DELETE", `${inGoing}/pods/p?gracePeriodSeconds=0`],
      ["DELETE", `${inGoing}/serviceaccounts`],
      ["DELETE", inGoing],
      ["POST", "/api/v1/namespaces/nowhere/configmaps", { metadata: { name: "q" } }],
      ["POST", "/api/v1/namespaces/nowhere/pods/p/eviction", { metadata: { name: "p" } }],
      ["PATCH", "/api/v1/namespaces/nowhere/configmaps/q", { metadata: { labels: { a: "b" } } }],
      ["DELETE", "/api/v1/namespaces/nowhere/configmaps/q"],
    ];
    for (const [method, path, body] of steps) {
      const [there, here] = await Promise.all(
        [real, own].map((side) => send(side, "admin", method, path, body)),
      );
      expect([method, path, here]).toEqual([method, path, there]);
    }
  });
});
