/**
 * The example webhook of a Gardener provider, as a process, on the real API server and on ours: it is registered as its manifest says, and carries a
 * shoot across together with the CSI migration controller. While it is down nothing is flipped (docs/behaviour/migration-controllers.md A1, A4, A7).
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { loadAllYaml } from "@kubernetes/client-node";
import { createAuthority, issueCertificate, type KeyPair, readDefinitions } from "@longshore/apiserver";
import { type HttpKubeClient, type KubeObject, resources } from "@longshore/kube";
import {
  addCSIMigrationController,
  type Cluster,
  clusters,
  controlPlanes,
  annotationKeyControllerFinished as finished,
  gardenerCrdsUrl,
  annotationKeyNeedsComplete as needsComplete,
} from "@longshore/migration/gardener";
import type { Component } from "@longshore/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  connectAs,
  createWithStatus,
  eventually,
  realEnv,
  signal,
  startControlPlane,
} from "./support/index.ts";
import { type ServedApi, startOwnApiServer } from "./support/own-api-server.ts";
import { type Daemon, freePorts, startDaemon } from "./support/processes.ts";

const example = fileURLToPath(new URL("../../examples/gardener-webhook/", import.meta.url));
const namespace = "shoot--p--a";
const components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;
const account = { namespace: "extension-provider-aws", name: "control-plane-webhook" };

let kubernetes: ServedApi;
let admin: HttpKubeClient;
let port: number;
let webhook: Daemon | undefined;
let controller: Component | undefined;

async function setUp(start: () => Promise<ServedApi>): Promise<void> {
  kubernetes = await start();
  admin = await connectAs(kubernetes);
  [port = 0] = await freePorts(1);
  for (const definition of [
    ...(await readDefinitions([fileURLToPath(gardenerCrdsUrl)])),
    machineConfigDefinition,
  ]) {
    const { status, body } = await kubernetes.call(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      definition,
    );
    expect(status, JSON.stringify(body)).toBe(201);
  }
  for (const plural of ["clusters", "controlplanes", "operatingsystemconfigs"]) {
    await eventually(`${plural} are served`, async () => {
      const { status } = await kubernetes.call("GET", `/apis/extensions.gardener.cloud/v1alpha1/${plural}`);
      return status === 200 || undefined;
    });
  }
  const authority = await createAuthority("webhook authority", realEnv.clock.now());
  await writeCertificate(authority);
  await applyManifest(authority.certificate);
  await writeFile(`${kubernetes.directory}/webhook.kubeconfig`, await kubeconfigOfAccount(), { mode: 0o600 });
  await startWebhook();
}

async function tearDown(): Promise<void> {
  await controller?.stop();
  await webhook?.stop();
  await admin?.close();
  await kubernetes?.stop();
}

/** What Gardener has of it that the example reads. */
const machineConfigDefinition = {
  metadata: { name: "operatingsystemconfigs.extensions.gardener.cloud" },
  spec: {
    group: "extensions.gardener.cloud",
    scope: "Namespaced",
    names: { plural: "operatingsystemconfigs", kind: "OperatingSystemConfig" },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

async function writeCertificate(authority: KeyPair): Promise<void> {
  const request = { commonName: "webhook", hosts: ["127.0.0.1"], now: realEnv.clock.now() };
  const { certificate, key } = await issueCertificate(authority, request);
  await mkdir(`${kubernetes.directory}/webhook`, { mode: 0o700 });
  await writeFile(`${kubernetes.directory}/webhook/tls.crt`, certificate, { mode: 0o600 });
  await writeFile(`${kubernetes.directory}/webhook/tls.key`, key, { mode: 0o600 });
}

/** What the manifest has, with the process in place of its Service, which no pod serves here. */
async function applyManifest(authority: string): Promise<void> {
  const text = (await readFile(`${example}manifest.yaml`, "utf8")).replaceAll(
    "CA_BUNDLE",
    Buffer.from(authority).toString("base64"),
  );
  for (const object of loadAllYaml(text) as (KubeObject & {
    webhooks?: { clientConfig: ClientConfig }[];
  })[]) {
    for (const { clientConfig } of object.webhooks ?? []) {
      const path = clientConfig.service?.path;
      delete clientConfig.service;
      clientConfig.url = `https://127.0.0.1:${port}${path}`;
    }
    await create(object);
  }
}

interface ClientConfig {
  service?: { readonly path?: string };
  url?: string;
}

async function create(object: KubeObject): Promise<void> {
  const {
    apiVersion = "",
    kind = "",
    metadata,
  } = object as KubeObject & {
    apiVersion?: string;
    kind?: string;
  };
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const within = metadata?.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  const { status, body } = await kubernetes.call("POST", `${root}${within}/${kind.toLowerCase()}s`, object);
  expect(status, JSON.stringify(body)).toBe(201);
}

async function kubeconfigOfAccount(): Promise<string> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const answer = await admin.createSubresource(
    resources.serviceAccounts,
    account,
    "token",
    request as KubeObject,
    {
      signal,
    },
  );
  return kubeconfig((answer as unknown as { readonly status: { readonly token: string } }).status.token);
}

async function kubeconfig(token: string): Promise<string> {
  const ca = (await readFile(kubernetes.caPath)).toString("base64");
  return JSON.stringify({
    clusters: [{ name: "c", cluster: { server: kubernetes.url, "certificate-authority-data": ca } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
}

async function startWebhook(): Promise<void> {
  const { directory } = kubernetes;
  const environment = {
    KUBECONFIG: `${directory}/webhook.kubeconfig`,
    CERTIFICATE_DIR: `${directory}/webhook`,
    PORT: `${port}`,
    PROVIDER_TYPE: "aws",
    CSI_MIGRATION_VERSION: "1.18",
  };
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const program = [process.execPath, "--import", "tsx", `${example}main.ts`];
  const daemon = startDaemon(
    "webhook",
    "/usr/bin/env",
    [...variables, ...program],
    `${directory}/webhook.log`,
  );
  webhook = daemon;
  await eventually("the webhook serves", async () => {
    if (!daemon.running()) throw new Error(daemon.logTail());
    return daemon.logTail().includes("serving") || undefined;
  });
}

async function killWebhook(): Promise<void> {
  await webhook?.stop();
  await writeFile(`${kubernetes.directory}/webhook.log`, "");
}

function aCluster(version: string, workers: readonly object[] = []): Cluster {
  const spec = { provider: { type: "aws", workers }, kubernetes: { version } };
  return {
    metadata: { name: namespace },
    spec: { cloudProfile: {}, seed: {}, shoot: { metadata: { name: "a" }, spec } },
  };
}

async function upgrade(version: string, workers: readonly object[] = []): Promise<void> {
  const cluster = await admin.get(clusters, { name: namespace }, { signal });
  await admin.update(
    clusters,
    { ...aCluster(version, workers), metadata: { ...cluster?.metadata } } as Cluster,
    {
      signal,
    },
  );
}

const aDeployment = (name: string) => ({
  metadata: { name, namespace },
  spec: {
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name, image: "i", command: [`/${name}`, "--v=2"] }] },
    },
  },
});

/** The gates and the number of cloud flags of each component. */
async function flags(): Promise<readonly string[]> {
  return Promise.all(
    components.map(async (name) => {
      const deployment = await admin.get(resources.deployments, { namespace, name }, { signal });
      const command = deployment?.spec?.template.spec?.containers[0]?.command ?? [];
      const gates = command.find((flag) => flag.startsWith("--feature-gates="))?.replaceAll("=true", "");
      const cloud = command.filter(
        (flag) => flag.includes("cloud") || flag.includes("PersistentVolumeLabel"),
      );
      return `${gates ?? "no gates"}, ${cloud.length} cloud flags`;
    }),
  );
}

const cloud = [3, 3, 0];
const inTree = cloud.map((count) => `no gates, ${count} cloud flags`);
const inProcess = cloud.map((count) => `--feature-gates=CSIMigration,CSIMigrationAWS, ${count} cloud flags`);
const complete = cloud.map(
  () => "--feature-gates=CSIMigration,CSIMigrationAWS,CSIMigrationAWSComplete, 0 cloud flags",
);

async function annotations(): Promise<readonly string[]> {
  const cluster = await admin.get(clusters, { name: namespace }, { signal });
  return Object.keys(cluster?.metadata.annotations ?? {}).sort();
}

const reported = (reason: string) =>
  eventually(`the event ${reason}`, async () => {
    const { items } = await admin.list(resources.events, { signal });
    return items.find((event) => event.reason === reason)?.message;
  });

/** As Gardener reconciles the control plane: each Deployment is written, and the webhook sees it. */
async function reconcile(): Promise<void> {
  for (const name of components) {
    await admin.patch(
      resources.deployments,
      { namespace, name },
      { type: "strategic", body: {} },
      { signal },
    );
  }
}

describe.each([
  ["the real API server", () => startControlPlane()],
  ["our API server", startOwnApiServer],
] as const)("on %s", (_, start) => {
  beforeAll(() => setUp(start), 120_000);
  afterAll(tearDown);

  test("before: a shoot below the version has cloud flags and no gate", async () => {
    const labels = { "shoot.gardener.cloud/provider": "aws" };
    await admin.create(resources.namespaces, { metadata: { name: namespace, labels } }, { signal });
    await admin.create(clusters, aCluster("1.17.9"), { signal });
    await admin.create(
      controlPlanes,
      { metadata: { name: "a", namespace }, spec: { type: "aws" } },
      { signal },
    );
    const encoded = Buffer.from(await kubeconfig(kubernetes.adminToken)).toString("base64");
    const metadata = { namespace, name: "gardener-internal" };
    await admin.create(resources.secrets, { metadata, data: { kubeconfig: encoded } }, { signal });
    for (const name of components) await admin.create(resources.deployments, aDeployment(name), { signal });
    expect(await flags()).toEqual(inTree);
  });

  test("a pool that would stay behind is refused, naming the field", async () => {
    const workers = [{ name: "pool-1", kubernetes: { version: "1.17.9" } }];
    await expect(upgrade("1.18.3", workers)).rejects.toThrow(
      /admission webhook "workers\.aws\.extensions\.gardener\.cloud" denied the request: spec\.shoot\.spec\.provider\.workers\[0\]\.kubernetes\.version: pool pool-1 has 1\.17\.9/,
    );
    const stored = await admin.get(clusters, { name: namespace }, { signal });
    expect(stored?.spec).toEqual(aCluster("1.17.9").spec);
  });

  test("in process: the first two gates beside the cloud flags, and all three on new machines", async () => {
    await upgrade("1.18.3", [{ name: "pool-1" }]);
    await reconcile();
    expect(await flags()).toEqual(inProcess);
    const content = "[Service]\nExecStart=/opt/bin/kubelet --v=2\n";
    const path = `/apis/extensions.gardener.cloud/v1alpha1/namespaces/${namespace}/operatingsystemconfigs`;
    const { status, body } = await kubernetes.call("POST", path, {
      apiVersion: "extensions.gardener.cloud/v1alpha1",
      kind: "OperatingSystemConfig",
      metadata: { name: "pool-1" },
      spec: { units: [{ name: "kubelet.service", content }] },
    });
    expect(status, JSON.stringify(body)).toBe(201);
    expect(body.spec.units[0].content).toContain("--cloud-provider=external");
    expect(body.spec.units[0].content).toContain("CSIMigrationAWSComplete=true");
  });

  test("while the webhook is down nothing is flipped, and the Cluster says why", async () => {
    await createWithStatus(admin, resources.nodes, {
      metadata: { name: "new-1" },
      status: { nodeInfo: { kubeletVersion: "v1.18.3" } as never },
    });
    const legacy = { metadata: { name: "default" }, provisioner: "kubernetes.io/aws-ebs" };
    await admin.create(resources.storageClasses, legacy, { signal });
    await killWebhook();
    controller = addCSIMigrationController(
      { ...realEnv, kube: admin },
      {
        type: "aws",
        csiMigrationKubernetesVersion: "1.18",
        storageClassNameToLegacyProvisioner: { default: "kubernetes.io/aws-ebs" },
      },
    );
    // The Cluster itself is judged by the webhook of workers: the annotation is not taken.
    expect(await reported("ClusterNotAnnotated")).toMatch(
      /failed calling webhook "workers\.aws.*: it is tried again/,
    );
    expect(await annotations()).toEqual([]);
    expect(await flags()).toEqual(inProcess);
    // With that one out of the way the annotation is taken, and the Deployments are not.
    const validating =
      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/extension-provider-aws";
    expect((await kubernetes.call("DELETE", validating)).status).toBe(200);
    expect(await reported("ControlPlaneNotPatched")).toMatch(
      /failed calling webhook "control-plane\.aws.*: it is tried again/,
    );
    expect(await annotations()).toEqual([needsComplete]);
    expect(await flags()).toEqual(inProcess);
  });

  test("once it is back the migration completes", async () => {
    await startWebhook();
    await eventually(
      "it is finished",
      async () => (await annotations()).includes(finished) || undefined,
      90_000,
    );
    expect(await flags()).toEqual(complete);
    expect(await annotations()).toEqual([finished, needsComplete]);
    const { items } = await admin.list(resources.storageClasses, { signal });
    expect(items).toEqual([]);
    // A pool may have a version of its own from here on; the controller has nothing more to do.
    await reconcile();
    expect(await flags()).toEqual(complete);
  });
});
