/** The webhook over HTTPS: AdmissionReviews as the API server sends them, Clusters on an API server in the test's process. */
import { request as httpsRequest } from "node:https";
import { fileURLToPath } from "node:url";
import {
  createApiServer,
  createAuthority,
  issueCertificate,
  type KeyPair,
  memoryStore,
  readDefinitions,
} from "@longshore/apiserver";
import type { KubeClient } from "@longshore/kube";
import {
  annotationKeyNeedsComplete,
  type Cluster,
  clusters,
  gardenerCrdsUrl,
} from "@longshore/migration/gardener";
import { noMeter, silentLogger, systemClock, systemRandom } from "@longshore/runtime";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type AdmissionServer, serveAdmission } from "./admission-server.ts";
import { providers } from "./providers.ts";
import { webhookHandlers } from "./webhook.ts";

const env = { clock: systemClock, random: systemRandom, logger: silentLogger, meter: noMeter };
const { signal } = new AbortController();
const namespace = "shoot--p--a";
const cloudFlags = [
  "--cloud-provider=aws",
  "--cloud-config=/etc/kubernetes/cloudprovider/cloudprovider.conf",
];

let authority: KeyPair;
let kube: KubeClient;
let webhook: AdmissionServer;

beforeAll(async () => {
  const now = env.clock.now();
  authority = await createAuthority("authority", now);
  const hosts = ["127.0.0.1"];
  const { certificate, key } = await issueCertificate(authority, { commonName: "webhook", hosts, now });
  const definitions = await readDefinitions([fileURLToPath(gardenerCrdsUrl)]);
  kube = createApiServer(env, { controllers: false, store: memoryStore(), definitions }).client();
  const provider = providers.find(({ type }) => type === "aws");
  if (provider === undefined) throw new Error("no provider");
  const handlers = webhookHandlers(kube, { provider, csiMigrationVersion: "1.18" });
  webhook = await serveAdmission(env, { port: 0, certificate, key, handlers });
});
afterAll(() => webhook?.close());
beforeEach(async () => {
  if ((await kube.get(clusters, { name: namespace }, { signal })) !== undefined) {
    await kube.delete(clusters, { name: namespace }, { signal });
  }
});

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the test looks into answers of any kind
  readonly body: any;
}

function send(path: string, body: string, method = "POST"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { method, ca: authority.certificate, agent: false } as const;
    const request = httpsRequest(new URL(path, webhook.url), options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => {
        resolve({
          status: response.statusCode ?? 0,
          body: JSON.parse(Buffer.concat(chunks).toString("utf8")),
        });
      });
    });
    request.once("error", reject);
    request.end(body);
  });
}

/** The `response` of the review. */
async function review(path: string, kind: string, object: object, oldObject: object | null = null) {
  const { name } = (object as { metadata: { name: string } }).metadata;
  const operation = oldObject === null ? "CREATE" : "UPDATE";
  const request = { uid: "u-1", kind: { kind }, operation, name, namespace, object, oldObject };
  const sent = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
  const { status, body } = await send(`${path}?timeout=5s`, JSON.stringify(sent));
  expect([status, body.apiVersion, body.kind, body.response?.uid]).toEqual([
    200,
    "admission.k8s.io/v1",
    "AdmissionReview",
    "u-1",
  ]);
  return body.response;
}

interface Given {
  readonly version?: unknown;
  readonly type?: string;
  readonly isComplete?: boolean;
  readonly workers?: readonly object[];
}

function aCluster({
  version = "1.18.3",
  type = "aws",
  isComplete = false,
  workers = [],
}: Given = {}): Cluster {
  const annotations = isComplete ? { [annotationKeyNeedsComplete]: "true" } : {};
  const spec = { provider: { type, workers }, kubernetes: { version } };
  return {
    metadata: { name: namespace, annotations },
    spec: { cloudProfile: {}, seed: {}, shoot: { metadata: { name: "a" }, spec } },
  };
}

function aDeployment(name: string, flags: readonly string[], form: "command" | "args" = "command") {
  const program = `/usr/local/bin/${name}`;
  const given = form === "command" ? { command: [program, ...flags] } : { command: [program], args: flags };
  const containers = [{ name: "vpn" }, { name, ...given }];
  return { metadata: { name, namespace }, spec: { template: { spec: { containers } } } };
}

/** Flags of the component after the patch of the webhook; undefined without a patch. */
async function flagsAfter(name: string, flags: readonly string[], form?: "command" | "args") {
  const response = await review("/mutate-control-plane", "Deployment", aDeployment(name, flags, form));
  expect(response).toMatchObject({ allowed: true });
  if (response.patch === undefined) return undefined;
  expect(response.patchType).toBe("JSONPatch");
  const [{ path, value }, ...more] = JSON.parse(Buffer.from(response.patch, "base64").toString("utf8"));
  expect(more).toEqual([]);
  expect(path).toBe(`/spec/template/spec/containers/1/${form ?? "command"}`);
  return (value as string[]).filter((one) => one.startsWith("--"));
}

const inProcess = "--feature-gates=Other=true,CSIMigration=true,CSIMigrationAWS=true";
const complete = `${inProcess},CSIMigrationAWSComplete=true`;
const theirs = ["--v=2", "--feature-gates=Other=true"];

describe("what the control plane is given (migration-controllers.md A7)", () => {
  it.each<[string, string, Given, readonly string[]]>([
    [
      "in-tree",
      "kube-apiserver",
      { version: "1.17.9" },
      [...theirs, ...cloudFlags, "--enable-admission-plugins=PersistentVolumeLabel"],
    ],
    [
      "in process",
      "kube-apiserver",
      {},
      ["--v=2", inProcess, ...cloudFlags, "--enable-admission-plugins=PersistentVolumeLabel"],
    ],
    ["complete", "kube-apiserver", { isComplete: true }, ["--v=2", complete]],
    [
      "in process",
      "kube-controller-manager",
      {},
      [
        ...["--v=2", inProcess, "--cloud-provider=external", cloudFlags[1] ?? ""],
        "--external-cloud-volume-plugin=aws",
      ],
    ],
    ["complete", "kube-controller-manager", { isComplete: true }, ["--v=2", complete]],
    ["in process", "kube-scheduler", {}, ["--v=2", inProcess]],
    ["complete", "kube-scheduler", { isComplete: true }, ["--v=2", complete]],
    // The shoot is above the version of the migration: complete without the annotation, with the gate of its release.
    [
      "complete",
      "kube-scheduler",
      { version: "1.21.4" },
      ["--v=2", `${inProcess},InTreePluginAWSUnregister=true`],
    ],
    // All gates are gone.
    ["complete", "kube-controller-manager", { version: "1.31.0" }, theirs],
  ])("%s: %s of %j", async (_, component, given, flags) => {
    await kube.create(clusters, aCluster(given), { signal });
    for (const form of ["command", "args"] as const) {
      const after = (await flagsAfter(component, theirs, form)) ?? theirs;
      expect([...after].sort()).toEqual([...flags].sort());
      // The empty patch of a later pass changes nothing.
      expect(await flagsAfter(component, after, form)).toBeUndefined();
    }
  });

  it.each(["kube-apiserver", "kube-controller-manager", "kube-scheduler"])(
    "%s: when the annotation comes, cloud flags go and the last gate comes",
    async (component) => {
      await kube.create(clusters, aCluster(), { signal });
      const before = (await flagsAfter(component, theirs)) ?? [];
      const cluster = await kube.get(clusters, { name: namespace }, { signal });
      const annotations = { [annotationKeyNeedsComplete]: "" };
      await kube.update(
        clusters,
        { ...cluster, metadata: { ...cluster?.metadata, annotations } } as Cluster,
        { signal },
      );
      expect((await flagsAfter(component, before))?.sort()).toEqual(["--v=2", complete].sort());
    },
  );

  it("other admission plugins stay", async () => {
    await kube.create(clusters, aCluster({ isComplete: true }), { signal });
    const flags = ["--enable-admission-plugins=NodeRestriction,PersistentVolumeLabel"];
    expect(await flagsAfter("kube-apiserver", flags)).toContain("--enable-admission-plugins=NodeRestriction");
  });

  it.each<[string, Given, readonly string[]]>([
    ["in-tree", { version: "1.17.9" }, ["--cloud-provider=aws"]],
    [
      "in process",
      {},
      [
        "--cloud-provider=external",
        "--feature-gates=CSIMigration=true,CSIMigrationAWS=true,CSIMigrationAWSComplete=true",
      ],
    ],
  ])("%s: the kubelets of new machines", async (_, given, flags) => {
    await kube.create(clusters, aCluster(given), { signal });
    const content = "[Service]\nRestart=always\nExecStart=/opt/bin/kubelet \\\n    --v=2\n[Install]\n";
    const units = [{ name: "other.service" }, { name: "kubelet.service", content }];
    const config = { metadata: { name: "pool-1" }, spec: { units } };
    const response = await review("/mutate-control-plane", "OperatingSystemConfig", config);
    const value = `[Service]\nRestart=always\nExecStart=/opt/bin/kubelet \\\n    ${["--v=2", ...flags].join(" \\\n    ")}\n[Install]\n`;
    expect(JSON.parse(Buffer.from(response.patch, "base64").toString("utf8"))).toEqual([
      { op: "replace", path: "/spec/units/1/content", value },
    ]);
    units[1] = { name: "kubelet.service", content: value };
    expect(await review("/mutate-control-plane", "OperatingSystemConfig", config)).toEqual({
      uid: "u-1",
      allowed: true,
    });
  });

  it("what is not of the control plane, or of another provider, is left as it is", async () => {
    await kube.create(clusters, aCluster({ type: "gcp" }), { signal });
    expect(await flagsAfter("kube-apiserver", theirs)).toBeUndefined();
    expect(await flagsAfter("etcd", theirs)).toBeUndefined();
  });
});

describe("what cannot be judged is refused, with the field", () => {
  const mutate = (object: object = aDeployment("kube-apiserver", theirs)) =>
    review("/mutate-control-plane", "Deployment", object);

  it("no Cluster", async () => {
    const message = expect.stringContaining(`Cluster ${namespace} is not there`);
    expect(await mutate()).toEqual({ uid: "u-1", allowed: false, status: { code: 500, message } });
  });

  it.each([
    ["newest", `"newest" is not a version`],
    [undefined, "spec.shoot.spec.kubernetes.version is missing"],
  ])("a Shoot of version %s", async (version, text) => {
    const cluster = aCluster();
    const shoot = { metadata: { name: "a" }, spec: { provider: { type: "aws" }, kubernetes: { version } } };
    await kube.create(clusters, { ...cluster, spec: { ...cluster.spec, shoot } }, { signal });
    const response = await mutate();
    expect(response).toMatchObject({ allowed: false, status: { code: 500 } });
    expect(response.status.message).toContain(text);
    expect(response.patch).toBeUndefined();
  });

  it("a Deployment without the container", async () => {
    await kube.create(clusters, aCluster(), { signal });
    const response = await mutate({ metadata: { name: "kube-apiserver" }, spec: {} });
    expect(response.status.message).toContain(
      "spec.template.spec.containers: no container is named kube-apiserver",
    );
  });

  it.each<[string, string, number, string, string?]>([
    ["no JSON", "{", 400, "no JSON"],
    [
      "a review of an old version",
      `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}`,
      400,
      "v1",
    ],
    [
      "no request",
      `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`,
      400,
      "uid",
    ],
    ["a body that is too long", " ".repeat(9 * 1024 * 1024), 413, "bytes"],
    ["another method", "", 405, "POST", "PUT"],
  ])("%s", async (_, body, status, text, method) => {
    const answer = await send("/validate-workers", body, method);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toContain(text);
  });
});

describe("versions of worker pools (migration-controllers.md A7, the warning)", () => {
  const pool = (version?: string) => ({ name: "p", kubernetes: { version } });
  const validate = (given: Given, before?: Given) =>
    review("/validate-workers", "Cluster", aCluster(given), before === undefined ? null : aCluster(before));

  it.each<[string, Given, Given | undefined, boolean]>([
    [
      "below the version, as the control plane",
      { version: "1.17.9", workers: [pool("1.17.9")] },
      undefined,
      true,
    ],
    ["below the version, none of its own", { version: "1.17.9", workers: [{ name: "p" }] }, undefined, true],
    [
      "below the version, another",
      { version: "1.17.9", workers: [{ name: "q" }, pool("1.16.2")] },
      undefined,
      false,
    ],
    [
      "the control plane goes on and the pool stays",
      { workers: [pool("1.17.9")] },
      { version: "1.17.9", workers: [pool("1.17.9")] },
      false,
    ],
    ["in process, another", { workers: [pool("1.18.1")] }, {}, false],
    ["complete, another", { workers: [pool("1.18.1")], isComplete: true }, undefined, true],
    ["above the version, another", { version: "1.19.2", workers: [pool("1.18.1")] }, undefined, true],
    ["another provider's", { version: "1.17.9", type: "gcp", workers: [pool("1.16.2")] }, undefined, true],
    // What was stored before the webhook came can be annotated and deleted.
    ["stored so already", { workers: [pool("1.17.9")] }, { workers: [pool("1.17.9")] }, true],
    ["a version that is none", { version: "newest", workers: [pool("1.17.9")] }, undefined, false],
  ])("%s", async (_, given, before, allowed) => {
    const response = await validate(given, before);
    expect(response.allowed, JSON.stringify(response)).toBe(allowed);
  });

  it.each<[string, Given, Given | undefined, boolean]>([
    ["below the version, another", { version: "1.17.9", workers: [pool("1.16.2")] }, undefined, false],
    ["below the version, none of its own", { version: "1.17.9", workers: [{ name: "p" }] }, undefined, true],
    [
      "the control plane goes on and the pool stays",
      { workers: [pool("1.17.9")] },
      { version: "1.17.9", workers: [pool("1.17.9")] },
      false,
    ],
    ["both have reached the version", { workers: [pool("1.18.1")] }, undefined, true],
    [
      "above the version, with a pool at it",
      { version: "1.19.2", workers: [pool("1.18.1")] },
      undefined,
      true,
    ],
    [
      "above the version, with a pool below it",
      { version: "1.19.2", workers: [pool("1.17.9")] },
      undefined,
      false,
    ],
    ["stored so already", { workers: [pool("1.17.9")] }, { workers: [pool("1.17.9")] }, true],
    ["another provider's", { version: "1.17.9", type: "gcp", workers: [pool("1.16.2")] }, undefined, true],
    ["a pool of no version", { workers: [pool("newest")] }, undefined, false],
  ])("a Shoot in the garden: %s", async (_, given, before, allowed) => {
    const shootOf = (one: Given) => aCluster(one).spec?.shoot as object;
    const old = before === undefined ? null : shootOf(before);
    const response = await review("/validate-workers", "Shoot", shootOf(given), old);
    expect(response.allowed, JSON.stringify(response)).toBe(allowed);
    if (!allowed && response.status.code === 422) {
      expect(response.status.message).toContain("spec.provider.workers[0].kubernetes.version: pool p has");
    }
  });

  it("the refusal names the field and the remedy", async () => {
    const { status } = await validate({ version: "1.17.9", workers: [{ name: "q" }, pool("1.16.2")] });
    expect(status).toEqual({
      code: 422,
      message:
        "spec.shoot.spec.provider.workers[1].kubernetes.version: pool p has 1.16.2 and the control plane 1.17.9: " +
        "remove the pool's version until the migration to CSI, with 1.18, is complete",
    });
  });
});
