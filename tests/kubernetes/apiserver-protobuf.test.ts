/**
 * Protobuf as we write and read it against the real API server's: of every kind that both serve, an object with every member set
 * is read by it from our bytes as it is from JSON; and what it writes is read by us as it says in JSON.
 */
import { readFile } from "node:fs/promises";
import type { KubeObject } from "@longshore/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtInKinds } from "../../packages/apiserver/src/registry/kinds/index.ts";
import { decodeObject } from "../../packages/apiserver/src/schema/decode-object.ts";
import { hasMessage } from "../../packages/apiserver/src/schema/message-fields.ts";
import { objectFromProtobuf } from "../../packages/apiserver/src/schema/object-from-protobuf.ts";
import { objectToProtobuf, protobufType } from "../../packages/apiserver/src/schema/object-to-protobuf.ts";
import { fullObject } from "../../packages/apiserver/src/testing/full-object.ts";
import { HttpsConnections } from "../../packages/apiserver/src/testing/http.ts";
import { soundObjects } from "../../packages/apiserver/src/testing/sound-objects.ts";
import {
  startWebhookServer,
  type WebhookServer,
} from "../../packages/apiserver/src/testing/webhook-server.ts";
import { emulatedVersion } from "../../packages/apiserver/src/versions/emulated-version.ts";
import { withoutNoise } from "./support/both-servers.ts";
import { type ControlPlane, eventually, startControlPlane } from "./support/index.ts";

let kubernetes: ControlPlane;
let to: HttpsConnections;
let hooks: WebhookServer;

/** Plugins that refuse an object before any webhook sees it, for what it refers to. */
const refusing = ["Priority", "RuntimeClass", "ServiceAccount", "PersistentVolumeLabel"].join(",");

beforeAll(async () => {
  [kubernetes, hooks] = await Promise.all([
    startControlPlane({ apiServerArgs: [`--disable-admission-plugins=${refusing}`] }),
    startWebhookServer(),
  ]);
  to = new HttpsConnections(kubernetes.url, { ca: await readFile(kubernetes.caPath, "utf8") });
}, 120_000);
afterAll(async () => {
  to?.close();
  await hooks?.stop();
  await kubernetes?.stop();
});

const send = async (
  method: string,
  path: string,
  body?: string | Uint8Array,
  accept = "application/json",
) => {
  const headers = {
    authorization: `Bearer ${kubernetes.adminToken}`,
    accept,
    ...(body === undefined
      ? {}
      : { "content-type": typeof body === "string" ? "application/json" : protobufType }),
  };
  return to.send({ method, path, headers, ...(body === undefined ? {} : { body }) });
};

const version = emulatedVersion("1.20");
const kinds = builtInKinds(version)
  .filter(({ group, kind, readOnly }) => hasMessage(group, kind) && readOnly !== true)
  .flatMap((of) => of.versions.map((served) => [`${of.group}/${served} ${of.kind}`, of, served] as const));

const collection = ({ group, plural, namespaced }: (typeof kinds)[number][1], served: string) =>
  `${group === "" ? "/api" : `/apis/${group}`}/${served}${namespaced ? "/namespaces/default" : ""}/${plural}`;

/**
 * Configurations of webhooks are shown to no webhook. In v1beta1 the groups of a SubjectAccessReview are in `group`, which is
 * not served: there it is read as v1 is.
 */
const unseen = /WebhookConfiguration$|v1beta1 (Local)?SubjectAccessReview$/;

describe("what the real server reads from our bytes", () => {
  const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  afterAll(async () => {
    await send("DELETE", `${path}/all`);
    await eventually("the server to ask no webhook", async () => (await probe()).status === 201 || undefined);
  });
  const probe = () => {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "probe" } };
    return send("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", JSON.stringify(body));
  };
  beforeAll(async () => {
    const webhook = {
      name: "all.example.com",
      clientConfig: { url: hooks.url, caBundle: hooks.caBundle },
      rules: [{ operations: ["CREATE"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      matchPolicy: "Exact",
    };
    const configuration = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "all" },
      webhooks: [webhook],
    };
    hooks.answer(() => ({ response: { allowed: false, status: { message: "seen", code: 400 } } }));
    expect((await send("POST", path, JSON.stringify(configuration))).status).toBe(201);
    await eventually("the server to ask the webhook", async () => {
      const { body } = await probe();
      return body.toString().includes("seen") || undefined;
    });
  }, 60_000);

  /** The object as the server has it after reading and before any rule: a webhook is shown it, and refuses it. */
  async function seen(path: string, body: string | Uint8Array): Promise<KubeObject> {
    hooks.asked.length = 0;
    const answer = await send("POST", `${path}?dryRun=All`, body);
    const [asked] = hooks.asked;
    expect(asked, answer.body.toString()).toBeDefined();
    const object = asked?.request.object as KubeObject;
    // The server keeps this one itself.
    return { ...object, metadata: { ...object.metadata, managedFields: undefined } } as unknown as KubeObject;
  }

  test.each(kinds.filter(([name]) => !unseen.test(name)))("%s", async (name, of, served) => {
    const full = fullObject(of, served, version) as KubeObject;
    const metadata = {
      ...full.metadata,
      ...(of.namespaced && { namespace: "default" }),
      managedFields: undefined,
    };
    const object = { ...full, metadata } as unknown as KubeObject;
    const path = collection(of, served);
    const fromJson = await seen(path, JSON.stringify(object));
    expect(await seen(path, objectToProtobuf(object) as Buffer)).toEqual(fromJson);
    expect(lost(object, fromJson).filter((member) => !(replaced[name] ?? ofTemplates).test(member))).toEqual(
      [],
    );
  });
});

/** What the real server makes of other members than those themselves. */
const replaced: Readonly<Record<string, RegExp>> = {
  "/v1 Node": /^spec\.podCIDRs/,
  "/v1 Secret": /^(data|stringData)\./,
  "/v1 Pod": /^(spec\.serviceAccount|status\.podIPs\..\.ip)$/,
};

/** The name of the account was called so once. */
const ofTemplates = /[tT]emplate\.spec\.serviceAccount$/;

/** Paths of the members that did not arrive as they were. */
function lost(sent: unknown, arrived: unknown, at = ""): readonly string[] {
  if (typeof sent !== "object" || sent === null) return sent === arrived || sent === undefined ? [] : [at];
  return Object.entries(sent).flatMap(([key, member]) =>
    lost(member, (arrived as Record<string, unknown> | undefined)?.[key], at === "" ? key : `${at}.${key}`),
  );
}

describe("what we read from the bytes of the real server", () => {
  const hook = {
    name: "a.example.com",
    clientConfig: {
      service: { namespace: "n", name: "s", path: "/p", port: 444 },
      caBundle: "",
    },
    rules: [
      {
        operations: ["CREATE", "UPDATE"],
        apiGroups: ["g"],
        apiVersions: ["v"],
        resources: ["r/s"],
        scope: "Namespaced",
      },
    ],
    failurePolicy: "Ignore",
    matchPolicy: "Exact",
    namespaceSelector: { matchLabels: { a: "b" } },
    objectSelector: { matchExpressions: [{ key: "c", operator: "In", values: ["d"] }] },
    sideEffects: "NoneOnDryRun",
    timeoutSeconds: 7,
    admissionReviewVersions: ["v1", "v1beta1"],
  };
  const byUrl = { name: "b.example.com", clientConfig: { url: "https://example.com/a" } };
  const configurations = (["Mutating", "Validating"] as const).map((type) => ({
    path: `/apis/admissionregistration.k8s.io/v1/${type.toLowerCase()}webhookconfigurations`,
    object: {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: `${type}WebhookConfiguration`,
      metadata: { name: "full", labels: { a: "b" } },
      webhooks: [
        { ...hook, clientConfig: { ...hook.clientConfig, caBundle: hooks?.caBundle } },
        { ...hook, ...byUrl },
      ].map((one) => (type === "Mutating" ? { ...one, reinvocationPolicy: "IfNeeded" } : one)),
    },
  }));

  /** The object that the server would make of the body, as it says in JSON and as we read from its bytes. */
  async function answered(path: string, body: string | Uint8Array): Promise<readonly unknown[]> {
    const inJson = await send("POST", `${path}?dryRun=All`, body);
    expect(inJson.status, inJson.body.toString()).toBe(201);
    const inBytes = await send("POST", `${path}?dryRun=All`, body, protobufType);
    // Its bytes have what is zero, too: members that JSON leaves out go when they are read as the type.
    return [JSON.parse(inJson.body.toString()), objectFromProtobuf(inBytes.body)].map((object) => {
      const [group = "", served] = object.apiVersion.includes("/")
        ? object.apiVersion.split("/")
        : ["", object.apiVersion];
      const decoded = withoutNoise(decodeObject(group, object.kind, object, version, served));
      return JSON.parse(JSON.stringify(decoded, withoutChance));
    });
  }

  /** Not what is drawn for each request, nor the kind of a template, for which protobuf has no place. */
  function withoutChance(this: unknown, member: string, value: unknown): unknown {
    if (member === "controller-uid") return undefined;
    if (member !== "volumeClaimTemplates") return value;
    return (value as object[]).map((item) => ({ ...item, apiVersion: undefined, kind: undefined }));
  }

  test.each(configurations)("all of $object.kind, also from our bytes", async ({ path, object }) => {
    const [inJson, inBytes] = await answered(path, JSON.stringify(object));
    expect(inBytes).toEqual(inJson);
    expect(lost(object, inJson)).toEqual([]);
    expect(await answered(path, objectToProtobuf(object as KubeObject) as Buffer)).toEqual([inJson, inJson]);
  });

  test.each(
    soundObjects.map((sound) => [`${sound.object.kind} ${sound.object.metadata.name}`, sound] as const),
  )("%s", async (_, { path, object }) => {
    const [inJson, inBytes] = await answered(path, JSON.stringify(object));
    expect(inBytes).toEqual(inJson);
    expect(await answered(path, objectToProtobuf(object as KubeObject) as Buffer)).toEqual([inJson, inJson]);
  });
});
