/** Charts: with their own values they render what the deployment itself is, and every value has an effect. */
import { load, loadAll } from "js-yaml";
import { describe, expect, test } from "vitest";
import type { DeployOptions } from "../deploy-options.ts";
import { planDeployment } from "../deployment-plan.ts";
import { allObjects, renderDeployment } from "../render-deployment.ts";
import { renderTemplate } from "../testing/chart-templates.ts";
import { renderChart } from "./render-chart.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
type Loose = any;

const minimal: DeployOptions = {
  name: "disk.csi.example.com",
  image: "registry.example.com/disk:v1",
  namespace: "storage",
};
const everything: DeployOptions = {
  ...minimal,
  attach: true,
  resize: true,
  snapshot: true,
  topology: true,
  snapshotController: true,
  secretNamespaces: ["one", "two"],
  nodeSelector: { "node-role.kubernetes.io/infra": "" },
  tolerations: [{ key: "infra", operator: "Exists", effect: "NoSchedule" }],
  storageClasses: [
    { name: "fast", parameters: { type: "ssd" } },
    { name: "slow", parameters: {} },
  ],
  defaultClass: true,
  driverArgs: ["--endpoint=$(CSI_ENDPOINT)"],
  controllerArgs: ["--a"],
  nodeArgs: ["--b: {{ c }}"],
  imagePullSecrets: ["registry"],
  kubeletDir: "/opt/kubelet",
  driverLimits: { memory: "1Gi" },
};
const forms: Readonly<Record<string, DeployOptions>> = {
  "the least": minimal,
  "everything, as a StatefulSet": everything,
  "a Deployment of three": { ...everything, replicas: 3 },
  "a Deployment of one": { ...everything, controller: "deployment" },
  "all in one DaemonSet": { ...everything, controller: "daemonset", nodeSelector: {}, tolerations: [] },
  "secrets of the whole cluster": { ...minimal, secretsClusterWide: true },
  "no class": { ...minimal, storageClasses: [] },
};

const chartOf = (options: DeployOptions) => renderChart(planDeployment(options));

function render(options: DeployOptions, change: (values: Loose) => void = () => {}): readonly Loose[] {
  const chart = chartOf(options);
  const values: Loose = load(chart.get("values.yaml") ?? "");
  change(values);
  const scope = { Values: values, Release: { Namespace: "storage", Service: "Helm" } };
  return [...chart]
    .filter(([path]) => path.startsWith("templates/"))
    .flatMap(([, text]) => loadAll(renderTemplate(text, scope)))
    .filter((object) => object !== null && object !== undefined);
}

/** Empty lists and maps are as good as none; a chart has no namespace, and its own manager. */
function comparable(objects: readonly Loose[]): ReadonlyMap<string, unknown> {
  const pruned = (value: Loose): Loose => {
    if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(pruned);
    if (value === null || typeof value !== "object") return value === "longshore" ? "Helm" : value;
    const members = Object.entries(value).map(([key, member]) => [key, pruned(member)] as const);
    const kept = members.filter(
      ([key, member]) =>
        member !== undefined &&
        key !== "longshore.dev/deploy-options" &&
        key !== "imagePullPolicy" &&
        key !== "affinity",
    );
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  };
  return new Map(
    objects
      .filter(({ kind }) => kind !== "Namespace")
      .map((object) => [
        `${object.kind} ${object.metadata.namespace ?? ""}/${object.metadata.name}`,
        pruned(object),
      ]),
  );
}

test.each(Object.entries(forms))("%s: with its own values it is the deployment", (_, options) => {
  const plain = allObjects(renderDeployment(planDeployment(options))).map(({ object }) => object);
  const [chart, direct] = [comparable(render(options)), comparable(plain)];
  expect([...chart.keys()].sort()).toEqual([...direct.keys()].sort());
  for (const [name, object] of direct) expect(chart.get(name)).toEqual(object);
});

describe("each value has an effect", () => {
  const options = { ...everything, replicas: 3 };
  const changes: readonly (readonly [string, (values: Loose) => void, string])[] = [
    ["image", (v) => Object.assign(v, { image: "new/driver:v9" }), "new/driver:v9"],
    ["sidecarImage", (v) => Object.assign(v, { sidecarImage: "new/longshore:v9" }), "new/longshore:v9"],
    ["imagePullPolicy", (v) => Object.assign(v, { imagePullPolicy: "Never" }), "Never"],
    ["imagePullSecrets", (v) => v.imagePullSecrets.push({ name: "another" }), "another"],
    ["kubeletDir", (v) => Object.assign(v, { kubeletDir: "/srv/kubelet" }), "/srv/kubelet/plugins_registry"],
    ["controller.replicas", (v) => Object.assign(v.controller, { replicas: 7 }), '"replicas":7'],
    [
      "controller.nodeSelector",
      (v) => Object.assign(v.controller, { nodeSelector: { where: "there" } }),
      '"where":"there"',
    ],
    [
      "controller.tolerations",
      (v) => v.controller.tolerations.push({ operator: "Exists", effect: "NoExecute" }),
      "NoExecute",
    ],
    ["driver.args", (v) => v.driver.args.push("--new=1"), "--new=1"],
    ["driver.controllerArgs", (v) => v.driver.controllerArgs.push("--new=2"), "--new=2"],
    ["driver.nodeArgs", (v) => v.driver.nodeArgs.push("--new=3"), "--new=3"],
    ["driver.resources", (v) => Object.assign(v.driver.resources, { limits: { memory: "7Gi" } }), "7Gi"],
    ["sidecars.resources", (v) => Object.assign(v.sidecars.resources, { limits: { memory: "8Gi" } }), "8Gi"],
    ["secretNamespaces", (v) => v.secretNamespaces.push("three"), '"namespace":"three"'],
    [
      "secretsClusterWide",
      (v) => Object.assign(v, { secretsClusterWide: true }),
      '"kind":"ClusterRole","metadata":{"name":"disk-csi-example-com-controller-secrets"',
    ],
    [
      "storageClasses",
      (v) => v.storageClasses.push({ ...v.storageClasses[0], name: "third" }),
      '"name":"third"',
    ],
  ];
  test.each(changes)("%s", (_, change, expected) => {
    expect(JSON.stringify(render(options))).not.toContain(expected);
    expect(JSON.stringify(render(options, change))).toContain(expected);
  });

  test("one replica has no budget, two have one", () => {
    const kinds = (replicas: number) =>
      render(options, (v) => Object.assign(v.controller, { replicas })).filter(
        ({ kind, metadata }) => kind === "PodDisruptionBudget" && metadata.name !== "snapshot-controller",
      );
    expect(kinds(1)).toHaveLength(0);
    expect(kinds(2)).toHaveLength(1);
  });

  test("every value is among them", () => {
    const values = load(chartOf(options).get("values.yaml") ?? "") as Loose;
    const names = Object.entries<Loose>(values).flatMap(([key, value]) =>
      ["controller", "driver", "sidecars"].includes(key)
        ? Object.keys(value).map((below) => `${key}.${below}`)
        : [key],
    );
    expect(names.sort()).toEqual(changes.map(([name]) => name).sort());
  });
});

test("the chart says what it is", () => {
  const chart = load(chartOf(minimal).get("Chart.yaml") ?? "") as Loose;
  expect(chart).toMatchObject({ apiVersion: "v2", name: "disk-csi-example-com", appVersion: "v1" });
  expect([...chartOf(minimal).keys()]).not.toContain("templates/snapshotclasses.yaml");
});
