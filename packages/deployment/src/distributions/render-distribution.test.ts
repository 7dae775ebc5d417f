/** The deployment of distributions' controllers: what is rendered, and that the chart renders the same. */
import { load, loadAll } from "js-yaml";
import { describe, expect, test } from "vitest";
import { renderTemplate } from "../testing/chart-templates.ts";
import { type DistributionOptions, planDistribution } from "./distribution-plan.ts";
import { renderDistribution } from "./render-distribution.ts";
import { renderDistributionChart } from "./render-distribution-chart.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of any kind
type Loose = any;

const operator: DistributionOptions = {
  controller: "feature-gate-operator",
  kubernetes: "1.21",
  order: "two-sets",
  plugins: ["kubernetes.io/aws-ebs", "kubernetes.io/cinder"],
};
const controller: DistributionOptions = {
  controller: "migration-controller",
  providerType: "aws",
  csiMigrationKubernetesVersion: "1.18",
  legacyStorageClasses: { default: "kubernetes.io/aws-ebs", "gp2.x": "kubernetes.io/aws-ebs" },
};
const forms: Readonly<Record<string, DistributionOptions>> = {
  "feature gate operator": operator,
  "feature gate operator, least": { controller: "feature-gate-operator", kubernetes: "1.20" },
  "migration controller": { ...controller, replicas: 1, kubernetesVersion: "1.20" },
  "migration controller of three": { ...controller, replicas: 3, image: "registry.example.com/l:v2" },
};

const objectsOf = (options: DistributionOptions): readonly Loose[] =>
  renderDistribution(planDistribution(options)).map(({ object }) => object);
const chartOf = (options: DistributionOptions) => renderDistributionChart(planDistribution(options));

function render(options: DistributionOptions, change: (values: Loose) => void = () => {}): readonly Loose[] {
  const chart = chartOf(options);
  const values: Loose = load(chart.get("values.yaml") ?? "");
  change(values);
  const scope = { Values: values, Release: { Namespace: "longshore-system", Service: "Helm" } };
  return [...chart]
    .filter(([path]) => path.startsWith("templates/"))
    .flatMap(([, text]) => loadAll(renderTemplate(text, scope)))
    .filter((object) => object !== null && object !== undefined);
}

/** Empty lists and maps are as good as none; a chart makes no namespace, and says when images are pulled. */
function comparable(objects: readonly Loose[]): ReadonlyMap<string, unknown> {
  const pruned = (value: Loose): Loose => {
    if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(pruned);
    if (value === null || typeof value !== "object") return value === "longshore" ? "Helm" : value;
    const kept = Object.entries(value)
      .map(([key, member]) => [key, pruned(member)] as const)
      .filter(([key, member]) => member !== undefined && key !== "imagePullPolicy");
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  };
  const named = objects.filter(({ kind }) => kind !== "Namespace");
  return new Map(named.map((object) => [`${object.kind} ${object.metadata.namespace}`, pruned(object)]));
}

test.each(Object.entries(forms))("%s: with its own values the chart is the deployment", (_, options) => {
  const [chart, direct] = [comparable(render(options)), comparable(objectsOf(options))];
  expect([...chart.keys()].sort()).toEqual([...direct.keys()].sort());
  for (const [name, object] of direct) expect(chart.get(name)).toEqual(object);
});

describe("each value of the chart has an effect", () => {
  const changes: readonly (readonly [string, (values: Loose) => void, string])[] = [
    ["image", (v) => Object.assign(v, { image: "new/longshore:v9" }), "new/longshore:v9"],
    ["imagePullPolicy", (v) => Object.assign(v, { imagePullPolicy: "Never" }), "Never"],
    ["imagePullSecrets", (v) => v.imagePullSecrets.push({ name: "another" }), "another"],
    ["replicas", (v) => Object.assign(v, { replicas: 7 }), '"replicas":7'],
    ["settings", (v) => v.settings.push("--v=5"), "--v=5"],
    ["nodeSelector", (v) => Object.assign(v, { nodeSelector: { where: "there" } }), '"where":"there"'],
    ["tolerations", (v) => v.tolerations.push({ operator: "Exists", effect: "NoExecute" }), "NoExecute"],
    ["resources", (v) => Object.assign(v.resources, { limits: { memory: "8Gi" } }), "8Gi"],
  ];
  test.each(changes)("%s", (_, change, expected) => {
    expect(JSON.stringify(render(operator))).not.toContain(expected);
    expect(JSON.stringify(render(operator, change))).toContain(expected);
  });

  test("every value is among them", () => {
    const values = load(chartOf(operator).get("values.yaml") ?? "") as Loose;
    expect(Object.keys(values).sort()).toEqual(changes.map(([name]) => name).sort());
  });
});

describe("what is rendered", () => {
  const pod = (options: DistributionOptions) =>
    objectsOf(options).find(({ kind }) => kind === "Deployment").spec.template.spec;

  test("the controller runs without any right on its machine, under an election, with a probe of it", () => {
    for (const options of Object.values(forms)) {
      const { containers, securityContext } = pod(options);
      const [container] = containers;
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(container.args).toContain("--leader-election");
      expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz/leader-election", port: "http" });
      expect(container.ports).toEqual([{ name: "http", containerPort: 8080 }]);
    }
  });

  test("no rule has a wildcard, and none of a secret, an update or a patch is without names but of Clusters and events", () => {
    const rules = Object.values(forms)
      .flatMap(objectsOf)
      .filter(({ kind }) => /Role$/.test(kind))
      .flatMap((role) => role.rules);
    expect(JSON.stringify(rules)).not.toContain("*");
    const unnamed = rules
      .filter(({ verbs, resourceNames }) => resourceNames === undefined && !/^(list|create)/.test(verbs[0]))
      .map(({ resources, verbs }) => `${verbs} ${resources}`);
    expect([...new Set(unnamed)].sort()).toEqual(["get controlplanes", "update clusters"]);
  });

  test("a second replica has a disruption budget, of the version that the cluster has", () => {
    const budget = (options: DistributionOptions) =>
      objectsOf(options).find(({ kind }) => kind === "PodDisruptionBudget")?.apiVersion;
    expect(budget({ ...operator, replicas: 1 })).toBeUndefined();
    expect(budget(operator)).toBe("policy/v1");
    expect(budget({ ...operator, kubernetesVersion: "1.20" })).toBe("policy/v1beta1");
  });
});

test.each<[string, Partial<DistributionOptions>, string]>([
  ["an image that is none", { image: "Not An Image" }, '`image`: "Not An Image" is not an image reference'],
  ["a namespace that is none", { namespace: "A.b" }, '`namespace`: "A.b" is not a namespace name'],
  ["no replica", { replicas: 0 }, "`replicas`: 0 is not a whole number from 1 to 100"],
  ["an old version", { kubernetesVersion: "1.19" }, '`kubernetesVersion`: "1.19" is not 1.20 or newer'],
  [
    "a provider type that names nothing",
    { providerType: "A W S" },
    '`providerType`: "A W S" names no objects',
  ],
  ["a long provider type", { providerType: "a".repeat(22) }, "use at most 21 lower-case letters"],
])("%s is refused", (_, given, message) => {
  expect(() => planDistribution({ ...controller, ...given } as DistributionOptions)).toThrow(message);
});
