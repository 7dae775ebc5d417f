/**
 * A Helm chart of a distribution's controller. What names and rights depend on is fixed when the chart is made; its values hold
 * the rest.
 */
import type { KubeObject } from "@longshore/kube";
import { block, onlyIf, releaseLabels } from "../chart/chart-texts.ts";
import type { Rendered } from "../objects/rendered.ts";
import { TemplateText, yamlText } from "../yaml-text.ts";
import type { DistributionPlan } from "./distribution-plan.ts";
import { distributionResources, fixedArgs, renderDistribution } from "./render-distribution.ts";

/** A part of an object, in which a template may stand anywhere. */
type Loose = Readonly<Record<string, unknown>>;

/** The files of the chart, by their paths in it. */
export function renderDistributionChart(plan: DistributionPlan): ReadonlyMap<string, string> {
  // A second replica can be asked for later.
  const rendered = renderDistribution({
    ...plan,
    namespace: "{{ $.Release.Namespace }}",
    createNamespace: false,
    image: "{{ $.Values.image }}",
    replicas: 2,
  });
  const of = (kinds: RegExp) =>
    documents(
      plan,
      rendered.filter(({ object: { kind = "" } }) => kinds.test(kind)),
    );
  return new Map([
    ["Chart.yaml", chartFile(plan)],
    ["values.yaml", valuesFile(plan)],
    ["templates/service-account.yaml", of(/^ServiceAccount$/)],
    ["templates/rbac.yaml", of(/^(Cluster)?Role(Binding)?$/)],
    ["templates/deployment.yaml", of(/^Deployment$/)],
    ["templates/disruption-budget.yaml", onlyIf("gt (int $.Values.replicas) 1", of(/^PodDisruptionBudget$/))],
  ]);
}

function chartFile({ name, controller, image }: DistributionPlan): string {
  const tag = /:([^/:@]+)(@.*)?$/.exec(image)?.[1];
  return yamlText({
    apiVersion: "v2",
    name,
    description: `longshore run ${controller}`,
    type: "application",
    version: "0.1.0",
    ...(tag === undefined ? {} : { appVersion: tag }),
    kubeVersion: ">=1.20.0-0",
  });
}

function valuesFile({ image, replicas, settings }: DistributionPlan): string {
  const { requests, limits } = distributionResources;
  const values = {
    image,
    imagePullPolicy: "IfNotPresent",
    imagePullSecrets: [],
    replicas,
    settings: [...settings],
    nodeSelector: {},
    tolerations: [],
    resources: { requests: { ...requests }, limits: { ...limits } },
  };
  return yamlText(values, comments);
}

const comments: ReadonlyMap<string, string> = new Map([
  ["image", "Longshore."],
  ["imagePullSecrets", "Secrets of the release's namespace, as - name: registry."],
  ["replicas", "One of them leads, the others stand by."],
  ["settings", "Flags of the controller beside those of its election, its endpoint and its names."],
]);

function documents(plan: DistributionPlan, rendered: readonly Rendered[]): string {
  return rendered
    .map(({ object, comments: above }) => `---\n${yamlText(templated(plan, object), above)}`)
    .join("");
}

/** The object with templates where values decide. */
function templated(plan: DistributionPlan, object: KubeObject): object {
  const { apiVersion, kind, metadata = {}, ...rest } = object as KubeObject & Loose;
  const labels = releaseLabels(metadata.labels ?? {});
  const spec = rest.spec as Loose | undefined;
  return {
    apiVersion,
    kind,
    metadata: { ...metadata, labels },
    ...rest,
    ...(spec?.template === undefined ? {} : { spec: workloadSpec(plan, spec) }),
  };
}

function workloadSpec(plan: DistributionPlan, spec: Loose): Loose {
  const template = spec.template as {
    readonly metadata: { readonly labels: Record<string, string> };
    readonly spec: Loose & { readonly containers: readonly Loose[] };
  };
  const fixed = fixedArgs(plan)
    .map((argument) => JSON.stringify(argument))
    .join(" ");
  return {
    ...spec,
    replicas: new TemplateText("$.Values.replicas"),
    template: {
      metadata: { labels: releaseLabels(template.metadata.labels) },
      spec: {
        ...template.spec,
        imagePullSecrets: block("toYaml $.Values.imagePullSecrets"),
        nodeSelector: block("toYaml $.Values.nodeSelector"),
        tolerations: block("toYaml $.Values.tolerations"),
        containers: template.spec.containers.map((container) => ({
          ...container,
          imagePullPolicy: "{{ $.Values.imagePullPolicy }}",
          args: block(`toYaml (concat (list ${fixed}) $.Values.settings)`),
          resources: block("toYaml $.Values.resources"),
        })),
      },
    },
  };
}
