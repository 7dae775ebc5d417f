/** Rendered deployments on the embedded API server, at both ends of what it emulates: taken as they are, and complete. */
import { fileURLToPath } from "node:url";
// Tests stand outside the floors: the embedded API server is the real thing to test against.
import { createApiServer, memoryStore, readDefinitions } from "@longshore/apiserver";
import type { KubeObject } from "@longshore/kube";
import { noMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { snapshotCrdsUrl } from "@longshore/storage";
import { everything, deployForms as forms, minimal } from "@longshore/testing/deployment";
import { load } from "js-yaml";
import { describe, expect, test } from "vitest";
import { DeployOptionError } from "./deploy-fields.ts";
import type { DeployOptions } from "./deploy-options.ts";
import { resourceOf } from "./deployed-kinds.ts";
import { planDeployment } from "./deployment-plan.ts";
import { allObjects, renderDeployment } from "./render-deployment.ts";
import { yamlText } from "./yaml-text.ts";

const signal = new AbortController().signal;
const objectsOf = (options: DeployOptions) => allObjects(renderDeployment(planDeployment(options)));

async function aServer(emulatedVersion: string) {
  const env = {
    clock: new VirtualClock(),
    random: new SeededRandom(1),
    logger: silentLogger,
    meter: noMeter,
  };
  const definitions = await readDefinitions([fileURLToPath(snapshotCrdsUrl)]);
  const server = createApiServer(env, {
    store: memoryStore(),
    definitions,
    emulatedVersion,
    controllers: false,
  });
  const kube = server.client();
  await kube.create(
    resourceOf({ apiVersion: "v1", kind: "Namespace" }),
    { metadata: { name: "storage-secrets" } },
    { signal },
  );
  return kube;
}

describe.each(["1.36", "1.20"])("at %s", (kubernetesVersion) => {
  test.each(Object.entries(forms))("%s is taken, and nothing of it is dropped", async (_, options) => {
    const kube = await aServer(kubernetesVersion);
    for (const { object } of objectsOf({ ...options, kubernetesVersion })) {
      const stored = await kube.create(resourceOf(object), object, { signal });
      expect(stored).toMatchObject(object);
    }
  });
});

test.each(Object.entries(forms))("%s reads back from its YAML, and is the same each time", (_, options) => {
  const rendered = objectsOf(options);
  for (const { object, comments } of rendered) expect(load(yamlText(object, comments))).toEqual(object);
  const text = (all: typeof rendered) =>
    all.map(({ object, comments }) => yamlText(object, comments)).join("---\n");
  expect(text(objectsOf(options))).toBe(text(rendered));
});

const find = <T>(options: DeployOptions, kind: string, name?: string): T | undefined =>
  objectsOf(options).find(
    ({ object }) => object.kind === kind && (name === undefined || object.metadata?.name === name),
  )?.object as T | undefined;
const kinds = (options: DeployOptions) => objectsOf(options).map(({ object }) => object.kind);

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
type Loose = any;

test("without an attacher nothing waits for one", () => {
  expect(find<Loose>(minimal, "CSIDriver").spec.attachRequired).toBe(false);
  expect(find<Loose>({ ...minimal, attach: true }, "CSIDriver").spec.attachRequired).toBe(true);
  const { containers } = find<Loose>(minimal, "StatefulSet").spec.template.spec;
  expect(containers.find((c: Loose) => c.name === "sidecars").args).toContain("--attacher=false");
  expect(find(minimal, "ClusterRole", "disk-csi-example-com-attacher")).toBeUndefined();
  expect(find({ ...minimal, attach: true }, "ClusterRole", "disk-csi-example-com-attacher")).toBeDefined();
});

test("the node part has its three host paths, and mounts are propagated", () => {
  const { spec } = find<Loose>(minimal, "DaemonSet").spec.template;
  expect(spec.volumes).toEqual([
    {
      name: "socket-dir",
      hostPath: { path: "/var/lib/kubelet/plugins/disk.csi.example.com", type: "DirectoryOrCreate" },
    },
    { name: "registration-dir", hostPath: { path: "/var/lib/kubelet/plugins_registry", type: "Directory" } },
    { name: "kubelet-dir", hostPath: { path: "/var/lib/kubelet", type: "Directory" } },
  ]);
  const mounts = (name: string) => spec.containers.find((c: Loose) => c.name === name).volumeMounts;
  expect(mounts("driver")).toContainEqual({
    name: "kubelet-dir",
    mountPath: "/var/lib/kubelet",
    mountPropagation: "Bidirectional",
  });
  expect(mounts("node-driver-registrar")).toContainEqual({
    name: "registration-dir",
    mountPath: "/registration",
  });
});

test("only the driver on nodes is privileged; nothing else may gain rights or write to its image", () => {
  for (const options of Object.values(forms)) {
    for (const { object } of objectsOf(options)) {
      const containers = (object as Loose).spec?.template?.spec.containers ?? [];
      for (const { name, securityContext } of containers) {
        const onNode = object.kind === "DaemonSet";
        if (onNode && name === "driver") expect(securityContext).toEqual({ privileged: true });
        else {
          expect(securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
        }
      }
      const pod = (object as Loose).spec?.template?.spec;
      if (pod === undefined) continue;
      expect(pod.securityContext.seccompProfile).toEqual({ type: "RuntimeDefault" });
      expect(pod.securityContext.runAsNonRoot ?? false).toBe(object.kind !== "DaemonSet");
      expect(containers.every((c: Loose) => c.resources.requests && c.resources.limits)).toBe(true);
    }
  }
});

test("a node part that asks the API server for nothing has no token", () => {
  const pod = (options: DeployOptions) => find<Loose>(options, "DaemonSet").spec.template.spec;
  expect(pod(everything).automountServiceAccountToken).toBe(false);
  expect(pod({ ...everything, nodeDeployment: true }).automountServiceAccountToken).toBe(true);
});

test("secrets are read where they are, or everywhere only if that is asked for", () => {
  const secretRules = (options: DeployOptions) =>
    objectsOf(options)
      .map(({ object }) => object as Loose)
      .filter(({ rules = [] }) => rules.some((rule: Loose) => rule.resources.includes("secrets")))
      .map(({ kind, metadata, rules }) => [kind, metadata.namespace, rules[0].verbs]);
  expect(secretRules(minimal)).toEqual([]);
  expect(secretRules({ ...minimal, secretNamespaces: ["b", "a", "a"] })).toEqual([
    ["Role", "a", ["get"]],
    ["Role", "b", ["get"]],
  ]);
  const wide = { ...minimal, secretsClusterWide: true };
  expect(secretRules(wide)).toEqual([["ClusterRole", undefined, ["get"]]]);
  expect(planDeployment(wide).warnings.join()).toContain("`secretNamespaces: NAMESPACE`");
  expect(planDeployment(minimal).warnings).toEqual([]);
});

test("several replicas elect a leader and are spread; one StatefulSet needs no election", () => {
  const args = (options: DeployOptions, kind: string) =>
    find<Loose>(options, kind).spec.template.spec.containers.find((c: Loose) => c.name === "sidecars").args;
  expect(args(minimal, "StatefulSet")).not.toContain("--leader-election");
  expect(args({ ...minimal, replicas: 3 }, "Deployment")).toContain("--leader-election");
  expect(args({ ...minimal, controller: "deployment" }, "Deployment")).toContain("--leader-election");
  expect(args({ ...minimal, controller: "daemonset" }, "DaemonSet")).toContain("--leader-election");
  expect(kinds({ ...minimal, replicas: 3 })).toContain("PodDisruptionBudget");
  expect(kinds(minimal)).not.toContain("PodDisruptionBudget");
  expect(
    kinds({ ...minimal, controller: "daemonset" }).filter((kind) => /Set|Deployment/.test(kind ?? "")),
  ).toEqual(["DaemonSet"]);
});

test("the node part comes before the controller, and what both refer to before them", () => {
  const order = kinds(everything);
  const at = (kind: string) => order.indexOf(kind);
  expect(at("Namespace")).toBe(0);
  expect(at("ServiceAccount")).toBeLessThan(at("DaemonSet"));
  expect(at("CSIDriver")).toBeLessThan(at("DaemonSet"));
  expect(at("DaemonSet")).toBeLessThan(at("StatefulSet"));
});

test("names of long drivers are cut, differ, and leave room for what is appended", () => {
  const long = (end: string) => `a-very-long-name-of-a-driver-that-goes-on.example.${end}`;
  const base = (name: string) => planDeployment({ ...minimal, name }).base;
  expect(base(long("com")).length).toBeLessThanOrEqual(40);
  expect(base(long("com"))).not.toBe(base(long("org")));
});

const refused: readonly (readonly [string, Partial<DeployOptions>, RegExp])[] = [
  ["a driver's name in capitals", { name: "Disk.CSI" }, /^`name`: .*lower-case/],
  ["a driver's name that is too long", { name: "a".repeat(64) }, /^`name`: .*at most 63/],
  ["an image with a blank", { image: "my image" }, /^`image`: /],
  ["an image of Longshore that is none", { sidecarImage: "-" }, /^`sidecarImage`: /],
  ["a namespace with a dot", { namespace: "a.b" }, /^`namespace`: /],
  [
    "two replicas of a StatefulSet",
    { controller: "statefulset", replicas: 2 },
    /^`replicas`: .*use `controller: deployment`$/,
  ],
  ["replicas of a DaemonSet", { controller: "daemonset", replicas: 2 }, /^`replicas`: /],
  ["no replica", { replicas: 0 }, /^`replicas`: /],
  ["half a replica", { replicas: 1.5 }, /^`replicas`: /],
  ["groups without snapshots", { groupSnapshot: true }, /^`groupSnapshot`: needs `snapshot`: the same/],
  [
    "nodes of their own without topology",
    { nodeDeployment: true },
    /^`nodeDeployment`: needs `topology`: without/,
  ],
  ["a label that is none", { nodeSelector: { "a b": "" } }, /^`nodeSelector`: /],
  ["a label's value that is none", { nodeSelector: { a: "b c" } }, /^`nodeSelector`: /],
  [
    "nodes of an all-in-one DaemonSet",
    { controller: "daemonset", nodeSelector: { a: "b" } },
    /^`nodeSelector`: /,
  ],
  [
    "an effect that is none",
    { tolerations: [{ key: "a", operator: "Exists", effect: "Never" }] },
    /^`tolerations`: /,
  ],
  ["a toleration of everything, by accident", { tolerations: [{ value: "x" }] }, /^`tolerations`: /],
  ["a namespace of secrets", { secretNamespaces: ["A"] }, /^`secretNamespaces`: /],
  ["secrets both ways", { secretNamespaces: ["a"], secretsClusterWide: true }, /^`secretsClusterWide`: /],
  [
    "a class twice",
    {
      storageClasses: [
        { name: "a", parameters: {} },
        { name: "a", parameters: {} },
      ],
    },
    /^`storageClasses`: .*twice/,
  ],
  [
    "a class whose secrets no component may read",
    {
      storageClasses: [{ name: "a", parameters: { "csi.storage.k8s.io/node-stage-secret-namespace": "s" } }],
    },
    /^`storageClasses`: .*add `secretNamespaces: s`$/,
  ],
  ["a kubelet's directory that is none", { kubeletDir: "var/lib" }, /^`kubeletDir`: /],
  ["a kubelet's directory that climbs", { kubeletDir: "/var/../etc" }, /^`kubeletDir`: /],
  [
    "a kubelet's directory that is too long for a socket",
    { kubeletDir: `/${"x".repeat(80)}` },
    /^`kubeletDir`: .*107/,
  ],
  ["a quantity that is none", { driverLimits: { memory: "lots" } }, /^`driverLimits`: /],
  ["a resource that is none", { sidecarRequests: { disk: "1Gi" } }, /^`sidecarRequests`: /],
  ["a Kubernetes that is too old", { kubernetesVersion: "1.19" }, /^`kubernetesVersion`: /],
];
test.each(refused)("%s is refused, with the field and what to do", (_, options, message) => {
  const refusal = refusalOf({ ...minimal, ...options });
  expect(refusal?.message).toMatch(message);
  expect(refusal?.message.startsWith(`\`${refusal.field}\`: `)).toBe(true);
});

function refusalOf(options: DeployOptions): DeployOptionError | undefined {
  try {
    planDeployment(options);
  } catch (error) {
    if (error instanceof DeployOptionError) return error;
    throw error;
  }
  return undefined;
}

test("no refusal and no warning names a flag", () => {
  const texts = refused.map(([, options]) => refusalOf({ ...minimal, ...options })?.message);
  const { warnings } = planDeployment({ ...minimal, secretsClusterWide: true });
  expect([...texts, ...warnings].filter((text) => text === undefined || / --?[a-z]|^-/.test(text))).toEqual(
    [],
  );
});

test("what is kept with the deployment renders the same again", () => {
  const kept =
    find<KubeObject>(everything, "CSIDriver")?.metadata?.annotations?.["longshore.dev/deploy-options"] ?? "";
  expect(objectsOf(JSON.parse(kept))).toEqual(objectsOf(everything));
});
