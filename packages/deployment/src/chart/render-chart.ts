/**
 * A Helm chart of a deployment. What the driver can do is fixed when the chart is made; its values hold what differs
 * from cluster to cluster: images, places, amounts, classes, namespaces of secrets.
 */
import type { KubeObject } from "@longshore/kube";
import type { DeploymentPlan } from "../deployment-plan.ts";
import { managedByLabel } from "../objects/labels.ts";
import type { Rendered } from "../objects/rendered.ts";
import { renderDeployment } from "../render-deployment.ts";
import { TemplateText, yamlText } from "../yaml-text.ts";
import { block, onlyIf, releaseLabels } from "./chart-texts.ts";
import { chartValues } from "./chart-values.ts";

/** A part of an object, in which a template may stand anywhere. */
type Loose = Readonly<Record<string, unknown>>;

/** The files of the chart, by their paths in it. */
export function renderChart(plan: DeploymentPlan): ReadonlyMap<string, string> {
  const { shared, snapshotController, node, controller } = renderDeployment(templatePlan(plan));
  const kinds = (wanted: RegExp) => shared.filter(({ object: { kind = "" } }) => wanted.test(kind));
  const budgets = (rendered: readonly Rendered[], isBudget: boolean) =>
    rendered.filter(({ object: { kind } }) => (kind === "PodDisruptionBudget") === isBudget);
  const secretAccess = ({ object: { metadata } }: Rendered) => metadata?.name?.endsWith("-secrets") === true;
  const access = kinds(/^(Cluster)?Role(Binding)?$/);
  const files: readonly (readonly [string, string])[] = [
    ["Chart.yaml", chartFile(plan)],
    ["values.yaml", chartValues(plan)],
    ["templates/service-accounts.yaml", documents(kinds(/^ServiceAccount$/))],
    ["templates/rbac.yaml", documents(access.filter((one) => !secretAccess(one)))],
    ["templates/secrets-rbac.yaml", secretDocuments(access.filter(secretAccess))],
    ["templates/csidriver.yaml", documents(kinds(/^CSIDriver$/))],
    ["templates/storageclasses.yaml", classDocuments(plan)],
    ["templates/snapshotclasses.yaml", documents(kinds(/SnapshotClass$/))],
    ["templates/snapshot-controller.yaml", documents(snapshotController)],
    ["templates/node.yaml", documents([node])],
    ["templates/controller.yaml", documents(budgets(controller, false))],
    [
      "templates/controller-disruption-budget.yaml",
      onlyIf("gt (int $.Values.controller.replicas) 1", documents(budgets(controller, true))),
    ],
  ];
  return new Map(files.filter(([, text]) => text !== ""));
}

/** The plan with templates in the places of what values say. */
function templatePlan(plan: DeploymentPlan): DeploymentPlan {
  const { createNamespace: _, ...options } = plan.options;
  return {
    ...plan,
    options: { ...options, imagePullSecrets: ["of-values"], imagePullPolicy: "Always" },
    namespace: "{{ $.Release.Namespace }}",
    createNamespace: false,
    image: "{{ $.Values.image }}",
    sidecarImage: "{{ $.Values.sidecarImage }}",
    kubeletDir: "{{ $.Values.kubeletDir }}",
    // A Deployment can be given more replicas later.
    replicas: plan.controller === "deployment" ? 2 : plan.replicas,
    secretNamespaces: ["{{ $namespace }}"],
    secretsClusterWide: false,
    storageClasses: [],
  };
}

function chartFile({ base, driver, image }: DeploymentPlan): string {
  const tag = /:([^/:@]+)(@.*)?$/.exec(image)?.[1];
  return yamlText({
    apiVersion: "v2",
    name: base,
    description: `The CSI driver ${driver}`,
    type: "application",
    version: "0.1.0",
    ...(tag === undefined ? {} : { appVersion: tag }),
    kubeVersion: ">=1.20.0-0",
  });
}

function documents(rendered: readonly Rendered[]): string {
  return rendered.map(({ object, comments }) => `---\n${yamlText(templated(object), comments)}`).join("");
}

/** A role in each of the namespaces, or one for all of them if that is requested. */
function secretDocuments(rendered: readonly Rendered[]): string {
  if (rendered.length === 0) return "";
  const everywhere = rendered.map(({ object, comments = new Map() }) => {
    const { metadata: { namespace: _, ...metadata } = {}, ...rest } = object as KubeObject & Loose;
    const { roleRef } = rest as { roleRef?: Loose };
    const wide = {
      ...rest,
      kind: `Cluster${object.kind}`,
      metadata,
      ...(roleRef === undefined ? {} : { roleRef: { ...roleRef, kind: "ClusterRole" } }),
    };
    return { object: wide as KubeObject, comments };
  });
  return [
    "{{- if $.Values.secretsClusterWide }}\n",
    documents(everywhere),
    "{{- else }}\n{{- range $namespace := $.Values.secretNamespaces }}\n",
    documents(rendered),
    "{{- end }}\n{{- end }}\n",
  ].join("");
}

function classDocuments(plan: DeploymentPlan): string {
  const { base, driver } = plan;
  const text = yamlText({
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: {
      name: "{{ $class.name }}",
      labels: {
        "app.kubernetes.io/name": base,
        [managedByLabel]: "{{ $.Release.Service }}",
        "longshore.dev/driver": driver,
      },
      annotations: block("toYaml $class.annotations"),
    },
    provisioner: driver,
    parameters: block("toYaml $class.parameters"),
    reclaimPolicy: "{{ $class.reclaimPolicy }}",
    volumeBindingMode: "{{ $class.volumeBindingMode }}",
    allowVolumeExpansion: new TemplateText("$class.allowVolumeExpansion"),
  });
  return `{{- range $class := $.Values.storageClasses }}\n---\n${text}{{- end }}\n`;
}

/** The object with templates where values decide. */
function templated(object: KubeObject): object {
  const { apiVersion, kind = "", metadata = {}, ...rest } = object as KubeObject & Loose;
  const { annotations: _, labels, ...kept } = metadata;
  const { spec } = rest as { readonly spec?: Loose };
  return {
    apiVersion,
    kind,
    metadata: { ...kept, ...(labels === undefined ? {} : { labels: releaseLabels(labels) }) },
    ...rest,
    ...(spec?.template === undefined ? {} : { spec: workloadSpec(kind, metadata.name ?? "", spec) }),
  };
}

function workloadSpec(kind: string, name: string, spec: Loose): Loose {
  const template = spec.template as {
    readonly metadata: { readonly labels: Record<string, string> };
    readonly spec: Loose;
  };
  const isController = name.endsWith("-controller") && name !== "snapshot-controller";
  const part = isController ? "controller" : kind === "DaemonSet" ? "node" : "snapshotController";
  return {
    ...spec,
    ...(part === "controller" && kind === "Deployment"
      ? { replicas: new TemplateText("$.Values.controller.replicas") }
      : {}),
    template: {
      metadata: { labels: releaseLabels(template.metadata.labels) },
      spec: podSpec(part, template.spec),
    },
  };
}

function podSpec(part: "controller" | "node" | "snapshotController", spec: Loose): Loose {
  const containers = spec.containers as readonly Loose[];
  return {
    ...spec,
    imagePullSecrets: block("toYaml $.Values.imagePullSecrets"),
    ...(part === "controller"
      ? {
          nodeSelector: block("toYaml $.Values.controller.nodeSelector"),
          tolerations: block("toYaml $.Values.controller.tolerations"),
        }
      : {}),
    containers: containers.map((container) => {
      const isDriver = container.name === "driver";
      return {
        ...container,
        imagePullPolicy: "{{ $.Values.imagePullPolicy }}",
        ...(isDriver
          ? { args: block(`toYaml (concat $.Values.driver.args $.Values.driver.${part}Args)`) }
          : {}),
        resources: block(`toYaml $.Values.${isDriver ? "driver" : "sidecars"}.resources`),
      };
    }),
  };
}
