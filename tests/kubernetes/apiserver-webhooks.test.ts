/**
 * Admission webhooks of our API server and of the real one: the same configurations are refused with the same causes, the
 * webhooks are asked the same, and their answers come to the same, word for word.
 */
import { createServer } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Answer } from "../../packages/apiserver/src/testing/http.ts";
import {
  allowing,
  patching,
  type ReviewedRequest,
  startWebhookServer,
  type WebhookAnswer,
  type WebhookServer,
} from "../../packages/apiserver/src/testing/webhook-server.ts";
import { type BothServers, startBothServers, withoutNoise } from "./support/both-servers.ts";
import { eventually } from "./support/index.ts";

let servers: BothServers;
let hooks: WebhookServer;

beforeAll(async () => {
  [servers, hooks] = await Promise.all([startBothServers(), startWebhookServer()]);
}, 120_000);
afterAll(async () => {
  await servers?.stop();
  await hooks?.stop();
});
beforeEach(() => {
  hooks.answer(allowing);
});

const api = "/apis/admissionregistration.k8s.io/v1";
const inDefault = "/api/v1/namespaces/default";
const configMaps = `${inDefault}/configmaps`;
const dry = "?dryRun=All";

type Kind = "Mutating" | "Validating";
const pathOf = (kind: Kind) => `${api}/${kind.toLowerCase()}webhookconfigurations`;

const everything = { operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] };

const webhook = (name: string, more: object = {}) => ({
  name: `${name}.example.com`,
  clientConfig: { url: `${hooks.url}/${name}`, caBundle: hooks.caBundle },
  rules: [everything],
  sideEffects: "None",
  admissionReviewVersions: ["v1"],
  // What else the server does does not concern it.
  objectSelector: { matchLabels: { hook: "yes" } },
  ...more,
});

const configuration = (kind: Kind, name: string, webhooks: readonly object[]) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: `${kind}WebhookConfiguration`,
  metadata: { name },
  webhooks,
});

const labels = { hook: "yes" };
const configMap = (metadata: object, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { labels, ...metadata },
  ...more,
});

/** Configures the webhooks on both servers, runs the test, and takes them away; both know it before each goes on. */
async function withWebhooks(
  kind: Kind,
  webhooks: readonly object[],
  work: () => Promise<void>,
): Promise<void> {
  const made = await servers.answers("POST", pathOf(kind), configuration(kind, "test", webhooks));
  expect([made.reference.status, made.ours.status]).toEqual([201, 201]);
  // The real one learns of it a moment later: the last webhook is one of the test's own, and refuses.
  try {
    await settled(true);
    hooks.asked.length = 0;
    await work();
  } finally {
    await servers.answers("DELETE", `${pathOf(kind)}/test`);
    await settled(false);
  }
}

const probeLabels = { probe: "yes" };
async function settled(isThere: boolean): Promise<void> {
  await eventually("the real server to learn of the webhooks", async () => {
    const { reference } = await servers.answers(
      "POST",
      configMaps + dry,
      configMap({ name: "probe", labels: probeLabels }),
    );
    return (reference.status !== 201) === isThere;
  });
}

/** The last webhook of each configuration: says whether the server knows it. */
const probe = () =>
  webhook("probe", {
    objectSelector: { matchLabels: probeLabels },
    clientConfig: { url: "https://127.0.0.1:1/probe" },
  });

/** What both have asked since it was called last. The token file gives the administrator of the real one a uid. */
function asked(isSorted = true): { readonly reference: unknown[]; readonly ours: unknown[] } {
  const all = hooks.asked.splice(0);
  const of = (isReference: boolean) => {
    const list = all
      .filter(({ request }) => (request.userInfo.uid === "admin") === isReference)
      .map(({ path, request }) => ({ path, request: comparable(request) }));
    // Validating webhooks are asked at the same time.
    return isSorted ? list.sort((a, b) => (a.path < b.path ? -1 : 1)) : list;
  };
  return { reference: of(true), ours: of(false) };
}

/** The user differs, and so do members of objects that hold nothing. */
function comparable({ userInfo: _, ...request }: ReviewedRequest): unknown {
  const seen = JSON.stringify(withoutEmpty(withoutNoise(request)));
  // A name that a server has made.
  return JSON.parse(seen.replaceAll(/generated-[a-z0-9]{5}/g, "generated-x"));
}

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value)
    .map(([key, member]) => [key, withoutEmpty(member)] as const)
    .filter(([, member]) => member !== false)
    .filter(([, member]) => typeof member !== "object" || member === null || Object.keys(member).length > 0);
  return Object.fromEntries(members);
}

async function expectSameAsked(...request: Parameters<BothServers["both"]>): Promise<void> {
  const { reference: answer } = await servers.expectSameWords(...request);
  const { ours, reference } = asked();
  expect(reference.length).toBeGreaterThan(0);
  expect(ours).toEqual(reference);
  await cached(pathOfObject(request, answer));
}

/**
 * Waits until the cache of the real server shows what is stored: an update begins with what the cache has, and when that
 * has been overtaken it begins again and asks every webhook once more.
 */
async function cached(path: string): Promise<void> {
  await eventually("the real server's cache to show what is stored", async () => {
    const seen = async (query: string) => {
      const { status, body } = (await servers.answers("GET", path + query)).reference;
      return status === 200 ? JSON.parse(body.toString()).metadata.resourceVersion : status;
    };
    return (await seen("")) === (await seen("?resourceVersion=0"));
  });
}

/** The path of what a request has written. */
function pathOfObject([method, path]: Parameters<BothServers["both"]>, { body }: Answer): string {
  const bare = (path.split("?")[0] ?? "").replace(/\/(status|scale|finalize|binding|eviction)$/, "");
  const { kind, metadata } = JSON.parse(body.toString());
  return method === "POST" && kind !== "Status" && metadata.name ? `${bare}/${metadata.name}` : bare;
}

const rule = { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] };

test.each<readonly [string, object]>([
  ["sound", {}],
  ["name", { name: "a.b" }],
  ["no name", { name: "" }],
  ["name no domain", { name: "A_b.c.d" }],
  ["no rules", { rules: [] }],
  ["operations", { rules: [{ ...rule, operations: ["*", "CREATE"] }] }],
  ["no operations", { rules: [{ ...rule, operations: [] }] }],
  ["operation", { rules: [{ ...rule, operations: ["create"] }] }],
  ["groups", { rules: [{ ...rule, apiGroups: ["*", "apps"] }] }],
  ["no groups", { rules: [{ ...rule, apiGroups: [] }] }],
  ["versions", { rules: [{ ...rule, apiVersions: ["*", "v1"] }] }],
  ["version", { rules: [{ ...rule, apiVersions: [""] }] }],
  ["no resources", { rules: [{ ...rule, resources: [] }] }],
  ["resource", { rules: [{ ...rule, resources: [""] }] }],
  ["resources", { rules: [{ ...rule, resources: ["*", "pods"] }] }],
  ["all", { rules: [{ ...rule, resources: ["*/*", "pods"] }] }],
  ["sub-resources", { rules: [{ ...rule, resources: ["pods/*", "pods/status", "*/scale", "a/scale"] }] }],
  ["scope", { rules: [{ ...rule, scope: "All" }] }],
  ["failure policy", { failurePolicy: "Maybe" }],
  ["match policy", { matchPolicy: "Maybe" }],
  ["side effects", { sideEffects: "Some" }],
  ["no side effects", { sideEffects: undefined }],
  ["unknown side effects", { sideEffects: "Unknown" }],
  ["time", { timeoutSeconds: 0 }],
  ["long time", { timeoutSeconds: 31 }],
  ["namespace selector", { namespaceSelector: { matchLabels: { "a b": "c" } } }],
  ["object selector", { objectSelector: { matchExpressions: [{ key: "a", operator: "In" }] } }],
  ["no versions", { admissionReviewVersions: [] }],
  ["versions of reviews", { admissionReviewVersions: ["v1", "v1"] }],
  ["unknown versions", { admissionReviewVersions: ["v2"] }],
  ["malformed version", { admissionReviewVersions: ["1", "v1"] }],
  ["reinvocation", { reinvocationPolicy: "Always" }],
  ["no client", { clientConfig: {} }],
  ["two clients", { clientConfig: { url: "https://a", service: { name: "a", namespace: "b" } } }],
  ["http", { clientConfig: { url: "http://a/b" } }],
  ["no host", { clientConfig: { url: "https://" } }],
  ["no scheme", { clientConfig: { url: "a/b" } }],
  ["user", { clientConfig: { url: "https://u@a/b" } }],
  ["query", { clientConfig: { url: "https://a/b?c=d" } }],
  ["fragment", { clientConfig: { url: "https://a/b#c" } }],
  ["service", { clientConfig: { service: { name: "a", namespace: "b", path: "/c/d", port: 8443 } } }],
  ["service without a name", { clientConfig: { service: { name: "", namespace: "" } } }],
  ["port", { clientConfig: { service: { name: "a", namespace: "b", port: 0 } } }],
  ["path", { clientConfig: { service: { name: "a", namespace: "b", path: "c" } } }],
  ["empty path", { clientConfig: { service: { name: "a", namespace: "b", path: "//" } } }],
  ["path with empty steps", { clientConfig: { service: { name: "a", namespace: "b", path: "/a//b_c/" } } }],
  ["bundle", { clientConfig: { url: "https://a", caBundle: "!!!" } }],
])("configurations: %s", async (_, change) => {
  const given = { ...webhook("a"), clientConfig: { url: "https://a/b" }, ...change };
  for (const kind of ["Mutating", "Validating"] as const) {
    await servers.expectSame("POST", pathOf(kind) + dry, configuration(kind, "a", [given]));
  }
});

test("two webhooks of one name", async () => {
  const one = { ...webhook("a"), clientConfig: { url: "https://a/b" } };
  for (const kind of ["Mutating", "Validating"] as const) {
    await servers.expectSame("POST", pathOf(kind) + dry, configuration(kind, "a", [one, one]));
  }
});

describe("what a webhook is asked", () => {
  test.each(["Mutating", "Validating"] as const)("%s: writes of all kinds", async (kind) => {
    await withWebhooks(kind, [webhook("all"), probe()], async () => {
      const path = `${configMaps}/asked`;
      await expectSameAsked("POST", configMaps + dry, configMap({ name: "asked" }, { data: { a: "b" } }));
      await expectSameAsked(
        "POST",
        `${configMaps}${dry}&fieldManager=me`,
        configMap({ generateName: "generated-" }),
      );
      await expectSameAsked("POST", configMaps, configMap({ name: "asked" }, { data: { a: "b" } }));
      await expectSameAsked("POST", configMaps, configMap({ name: "asked" }));
      await expectSameAsked("PUT", path, configMap({ name: "asked" }, { data: { a: "c" } }));
      await expectSameAsked("PUT", path, configMap({ name: "asked" }, { data: { a: "c" } }));
      const merge = "application/merge-patch+json";
      await expectSameAsked("PATCH", path, { data: { e: "f" } }, merge);
      await expectSameAsked(
        "PATCH",
        `${path}?fieldManager=me`,
        { metadata: { labels: { hook: "no" } } },
        merge,
      );
      await expectSameAsked("PATCH", path, { metadata: { labels } }, merge);
      const apply = "application/apply-patch+yaml";
      const applied = configMap({ name: "asked", namespace: "default" }, { data: { g: "h" } });
      await expectSameAsked("PATCH", `${path}?fieldManager=me`, applied, apply);
      const second = { ...applied, metadata: { ...applied.metadata, name: "applied" } };
      await expectSameAsked("PATCH", `${configMaps}/applied?fieldManager=me`, second, apply);
      await expectSameAsked("DELETE", `${path}?propagationPolicy=Background`);
      await expectSameAsked("DELETE", `${configMaps}/applied`, { gracePeriodSeconds: 5, dryRun: ["All"] });
      await expectSameAsked("DELETE", `${configMaps}?labelSelector=hook%3Dyes`);
    });
  });

  test("namespaces, sub-resources and kinds of the cluster", async () => {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "hooked", labels } };
    const template = { metadata: { labels }, spec: { containers: [{ name: "a", image: "b" }] } };
    await withWebhooks(
      "Validating",
      [webhook("all", { objectSelector: {}, rules: [{ ...everything, scope: "*" }] }), probe()],
      async () => {
        await expectSameAsked("POST", "/api/v1/namespaces", namespace);
        await expectSameAsked("PUT", "/api/v1/namespaces/hooked/finalize", {
          ...namespace,
          spec: { finalizers: ["a.b/c"] },
        });
        await expectSameAsked("DELETE", "/api/v1/namespaces/hooked");
        const deployments = "/apis/apps/v1/namespaces/default/deployments";
        await expectSameAsked("POST", deployments, {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "d" },
          spec: { replicas: 1, selector: { matchLabels: labels }, template },
        });
        await expectSameAsked(
          "PATCH",
          `${deployments}/d/status`,
          { status: { replicas: 1 } },
          "application/merge-patch+json",
        );
        await expectSameAsked("PUT", `${deployments}/d/scale`, {
          apiVersion: "autoscaling/v1",
          kind: "Scale",
          metadata: { name: "d", namespace: "default" },
          spec: { replicas: 2 },
        });
        await expectSameAsked("DELETE", `${deployments}/d`);
        await expectSameAsked("POST", `${inDefault}/pods`, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "p" },
          spec: template.spec,
        });
        await expectSameAsked("POST", `${inDefault}/pods/p/binding`, {
          apiVersion: "v1",
          kind: "Binding",
          metadata: { name: "p", namespace: "default" },
          target: { kind: "Node", name: "n" },
        });
        await expectSameAsked("POST", `${inDefault}/pods/p/eviction`, {
          apiVersion: "policy/v1beta1",
          kind: "Eviction",
          metadata: { name: "p", namespace: "default" },
          deleteOptions: { gracePeriodSeconds: 0 },
        });
        await expectSameAsked("POST", "/apis/storage.k8s.io/v1/storageclasses", {
          apiVersion: "storage.k8s.io/v1",
          kind: "StorageClass",
          metadata: { name: "s" },
          provisioner: "a",
        });
        await expectSameAsked("DELETE", "/apis/storage.k8s.io/v1/storageclasses/s");
        await expectSameAsked("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: { verb: "get", resource: "pods" } },
        });
      },
    );
  });

  test("in the version, or the group, that its rules name", async () => {
    const rules = (apiGroups: string[], apiVersions: string[], resources: string[]) => [
      { operations: ["CREATE"], apiGroups, apiVersions, resources },
    ];
    const webhooks = [
      webhook("core", { rules: rules([""], ["v1"], ["events"]) }),
      webhook("exact", { rules: rules(["events.k8s.io"], ["v1"], ["events"]), matchPolicy: "Exact" }),
      webhook("beta", { rules: rules(["scheduling.k8s.io"], ["v1beta1"], ["priorityclasses"]) }),
      probe(),
    ];
    await withWebhooks("Validating", webhooks, async () => {
      const event = { kind: "Event", metadata: { name: "e", namespace: "default", labels } };
      await expectSameAsked("POST", `/apis/events.k8s.io/v1/namespaces/default/events${dry}`, {
        ...event,
        apiVersion: "events.k8s.io/v1",
        ...{ eventTime: "2020-01-01T00:00:00.000000Z", reportingController: "a/b", reportingInstance: "c" },
        ...{
          action: "d",
          reason: "e",
          type: "Normal",
          regarding: { kind: "Pod", name: "p", namespace: "default" },
        },
      });
      await expectSameAsked("POST", `${inDefault}/events${dry}`, {
        ...event,
        apiVersion: "v1",
        involvedObject: { kind: "Pod", name: "p", namespace: "default" },
      });
      await expectSameAsked("POST", `/apis/scheduling.k8s.io/v1/priorityclasses${dry}`, {
        apiVersion: "scheduling.k8s.io/v1",
        kind: "PriorityClass",
        metadata: { name: "p", labels },
        value: 1,
      });
    });
  });
});

const refusals: readonly (readonly [string, WebhookAnswer])[] = [
  ["nothing said", { response: { allowed: false } }],
  ["a message", { response: { allowed: false, status: { message: "no" } } }],
  ["a reason", { response: { allowed: false, status: { reason: "Quota" } } }],
  ["a code", { response: { allowed: false, status: { code: 422, reason: "Invalid", message: "no" } } }],
  ["a low code", { response: { allowed: false, status: { code: 200, status: "Success", message: "no" } } }],
  [
    "details",
    {
      response: {
        allowed: false,
        status: {
          code: 409,
          message: "no",
          details: { causes: [{ field: "a", message: "b", reason: "c" }] },
        },
      },
    },
  ],
  ["nothing", { body: "{}" }],
  ["no JSON", { body: "no" }],
  ["500", { status: 500, body: "it broke" }],
  ["404", { status: 404, body: "not here" }],
  ["403", { status: 403, body: "not you" }],
  ["503", { status: 503, body: "later" }],
  ["another uid", { response: { uid: "other", allowed: true } }],
  [
    "another version",
    {
      body: '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":true}}',
    },
  ],
  ["a patch without its type", { response: { allowed: true, patch: "W10=" } }],
  ["a type without a patch", { response: { allowed: true, patchType: "JSONPatch" } }],
  ["a patch of another type", { response: { allowed: true, patch: "W10=", patchType: "Other" } }],
];

describe("what its answer comes to", () => {
  const differs = (text: string) =>
    // What cannot be read is said in words of the reader.
    text
      .replace(/uid=\\?"[-0-9a-f]{36}/, "uid=…")
      .replace(
        /(received invalid webhook response: |failed calling webhook "[^"]*": )(?!expected response.uid|webhook |validating|the server|an error).*/,
        "$1…",
      );

  test.each(["Mutating", "Validating"] as const)("%s: refusals and failures", async (kind) => {
    const tolerant = webhook("tolerant", {
      failurePolicy: "Ignore",
      objectSelector: { matchLabels: { hook: "ignored" } },
    });
    await withWebhooks(kind, [webhook("all"), tolerant, probe()], async () => {
      for (const [what, answer] of refusals) {
        hooks.answer(() => answer);
        const given = await servers.answers("POST", configMaps + dry, configMap({ name: "a" }));
        const shown = [given.reference, given.ours].map(({ status, body }) => {
          const { reason, message, details, code } = JSON.parse(body.toString());
          const causes = details?.causes?.map(({ message: m = "", ...rest }: Record<string, string>) => ({
            ...rest,
            message: differs(m),
          }));
          return {
            what,
            status,
            code,
            reason,
            message: message && differs(message),
            details: details && { ...details, causes },
          };
        });
        expect(shown[1]).toEqual(shown[0]);
        const ignored = configMap({ name: "a", labels: { hook: "ignored" } });
        const again = await servers.answers("POST", configMaps + dry, ignored);
        expect([what, again.ours.status]).toEqual([what, again.reference.status]);
      }
    });
  });

  test("a webhook that is not there, not trusted, or does not answer", async () => {
    const unused = await unusedPort();
    const other = await startWebhookServer(["elsewhere.example.com"]);
    const each = (name: string, clientConfig: object, more: object = {}) =>
      webhook(name, { clientConfig, objectSelector: { matchLabels: { hook: name } }, ...more });
    const caBundle = hooks.caBundle;
    const webhooks = [
      each("gone", { url: `https://127.0.0.1:${unused}/a`, caBundle }),
      each("untrusted", { url: `${hooks.url}/a`, caBundle: other.caBundle }),
      each("silent", { url: `${hooks.url}/silent`, caBundle }, { timeoutSeconds: 1 }),
      each(
        "silent-ignored",
        { url: `${hooks.url}/silent`, caBundle },
        { timeoutSeconds: 1, failurePolicy: "Ignore" },
      ),
      each("service", {
        service: { name: "missing", namespace: "default", path: "/a", port: 8443 },
        caBundle,
      }),
      each("effects", { url: `${hooks.url}/a`, caBundle }, { sideEffects: "NoneOnDryRun" }),
      probe(),
    ];
    hooks.answer((_, path) => (path.startsWith("/silent") ? "silence" : allowing()));
    try {
      await withWebhooks("Validating", webhooks, async () => {
        for (const hook of ["gone", "untrusted", "silent", "silent-ignored", "service", "effects"]) {
          const named = configMap({ name: "a", labels: { hook } });
          const { ours, reference } = await servers.answers("POST", configMaps + dry, named);
          // Go says what it has tried with the certificate, which depends on its version.
          const said = [ours, reference].map(({ status, body }) => {
            const { message } = JSON.parse(body.toString());
            return [status, message?.replace(/ \(possibly because .*/, "")];
          });
          expect(said[0]).toEqual(said[1]);
        }
      });
    } finally {
      await other.stop();
    }
  });

  test("patches, and what is done with them", async () => {
    const steps: Record<string, object[]> = {
      "/first": [{ op: "add", path: "/data/first", value: "1" }],
      "/second": [{ op: "add", path: "/metadata/annotations", value: { second: "2" } }],
    };
    const webhooks = [
      webhook("first", { reinvocationPolicy: "IfNeeded" }),
      webhook("second"),
      webhook("third", { reinvocationPolicy: "IfNeeded" }),
      probe(),
    ];
    hooks.answer((_, path) => patching(steps[path.split("?")[0] ?? ""] ?? []));
    await withWebhooks("Mutating", webhooks, async () => {
      await servers.expectSame("POST", configMaps, configMap({ name: "patched" }, { data: { a: "b" } }));
      const order = (list: unknown[]) => list.map((one) => (one as { path: string }).path);
      const created = asked(false);
      expect(order(created.ours)).toEqual(order(created.reference));
      expect(order(created.ours).length).toBeGreaterThan(3);
      await servers.expectSame(
        "PUT",
        `${configMaps}/patched`,
        configMap({ name: "patched" }, { data: { a: "c" } }),
      );
      await servers.expectSame("GET", `${configMaps}/patched`);
      await servers.expectSame("POST", `${configMaps}${dry}`, configMap({ name: "no-data" }));
      for (const bad of [
        [{ op: "remove", path: "/data/missing" }],
        [{ op: "replace", path: "/data", value: "no map" }],
        [{ op: "test", path: "/data/a", value: "x" }],
        [{ op: "replace", path: "/metadata/name", value: "Not_A_Name" }],
        [{ op: "add", path: "/metadata/labels/x", value: "y" }],
        [{ op: "add", path: "/metadata/finalizers", value: ["a"] }],
      ]) {
        steps["/first"] = bad;
        const { ours, reference } = await servers.answers(
          "POST",
          configMaps + dry,
          configMap({ name: "b" }, { data: { a: "b" } }),
        );
        expect([bad, ours.status]).toEqual([bad, reference.status]);
      }
      await servers.answers("DELETE", `${configMaps}/patched`);
    });
  });

  test("a pod's patch is filled and admitted as what a client sends", async () => {
    const steps = [
      {
        op: "add",
        path: "/spec/containers/-",
        value: { name: "side", image: "c:1", ports: [{ containerPort: 1 }] },
      },
      { op: "add", path: "/spec/priorityClassName", value: "system-node-critical" },
    ];
    const more = [{ op: "remove", path: "/spec/priority" }, ...steps];
    hooks.answer(({ object }) =>
      patching(object.spec.containers.length > 1 ? [] : object.spec.priority === undefined ? steps : more),
    );
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a", namespace: "kube-system", labels },
      spec: { containers: [{ name: "a", image: "b" }] },
    };
    await withWebhooks("Mutating", [webhook("all"), probe()], async () => {
      await servers.expectSame("POST", `/api/v1/namespaces/kube-system/pods${dry}`, pod);
    });
  });

  test("warnings", async () => {
    hooks.answer(() => ({ response: { allowed: true, warnings: ["one", "two", "one"] } }));
    await withWebhooks("Validating", [webhook("all"), probe()], async () => {
      const { ours, reference } = await servers.answers("POST", configMaps + dry, configMap({ name: "a" }));
      expect(ours.headers.warning).toEqual(reference.headers.warning);
      expect(ours.headers.warning).toContain("one");
    });
  });

  test("selectors and scopes", async () => {
    const selecting = (name: string, more: object) => webhook(name, { objectSelector: {}, ...more });
    const webhooks = [
      selecting("namespaced", {
        rules: [{ ...everything, scope: "Namespaced" }],
        namespaceSelector: { matchLabels: { team: "a" } },
      }),
      selecting("cluster", {
        rules: [{ ...everything, scope: "Cluster" }],
        namespaceSelector: { matchLabels: { team: "a" } },
      }),
      probe(),
    ];
    const namespace = (name: string, team: string) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, labels: { team } },
    });
    await servers.answers("POST", "/api/v1/namespaces", namespace("team-a", "a"));
    await servers.answers("POST", "/api/v1/namespaces", namespace("team-b", "b"));
    await withWebhooks("Validating", webhooks, async () => {
      const paths = async (...request: Parameters<BothServers["both"]>) => {
        await servers.answers(...request);
        const { ours, reference } = asked();
        expect(ours).toEqual(reference);
        return ours.length;
      };
      const inTeam = (team: string) => `/api/v1/namespaces/team-${team}/configmaps${dry}`;
      expect(await paths("POST", inTeam("a"), configMap({ name: "a", labels: {} }))).toBe(1);
      expect(await paths("POST", inTeam("b"), configMap({ name: "a", labels: {} }))).toBe(0);
      expect(await paths("POST", `/api/v1/namespaces${dry}`, namespace("x", "a"))).toBe(1);
      expect(await paths("POST", `/api/v1/namespaces${dry}`, namespace("x", "b"))).toBe(0);
      const storageClass = {
        apiVersion: "storage.k8s.io/v1",
        kind: "StorageClass",
        metadata: { name: "x" },
        provisioner: "a",
      };
      expect(await paths("POST", `/apis/storage.k8s.io/v1/storageclasses${dry}`, storageClass)).toBe(1);
      // Of themselves they are never asked.
      expect(await paths("POST", `${pathOf("Validating")}${dry}`, configuration("Validating", "x", []))).toBe(
        0,
      );
    });
  });
});

async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
