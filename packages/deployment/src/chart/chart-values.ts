/** The values of a chart, with what each is for. */
import type { DeploymentPlan } from "../deployment-plan.ts";
import { yamlText } from "../yaml-text.ts";

/** `values.yaml`: with these values the chart renders what the plan does. */
export function chartValues(plan: DeploymentPlan): string {
  const { options } = plan;
  const values = {
    image: plan.image,
    sidecarImage: plan.sidecarImage,
    imagePullPolicy: options.imagePullPolicy ?? "IfNotPresent",
    imagePullSecrets: (options.imagePullSecrets ?? []).map((name) => ({ name })),
    kubeletDir: plan.kubeletDir,
    controller: {
      replicas: plan.replicas,
      nodeSelector: { ...plan.nodeSelector },
      tolerations: plan.tolerations.map((toleration) => ({ ...toleration })),
    },
    driver: {
      args: [...(options.driverArgs ?? [])],
      controllerArgs: [...(options.controllerArgs ?? [])],
      nodeArgs: [...(options.nodeArgs ?? [])],
      resources: plan.resources.driver,
    },
    sidecars: { resources: plan.resources.sidecar },
    secretNamespaces: [...plan.secretNamespaces],
    secretsClusterWide: plan.secretsClusterWide,
    storageClasses: plan.storageClasses.map(({ name, parameters }, index) => ({
      name,
      annotations:
        options.defaultClass === true && index === 0
          ? { "storageclass.kubernetes.io/is-default-class": "true" }
          : {},
      parameters: { ...parameters },
      reclaimPolicy: options.reclaimPolicy ?? "Delete",
      volumeBindingMode: options.bindingMode ?? (plan.needs.topology ? "WaitForFirstConsumer" : "Immediate"),
      allowVolumeExpansion: options.resize === true,
    })),
  };
  return yamlText(values, comments);
}

const comments: ReadonlyMap<string, string> = new Map([
  ["image", "The driver."],
  ["sidecarImage", "Longshore: the sidecars, the registrar and the liveness probe."],
  ["imagePullSecrets", "Secrets of the release's namespace, as - name: registry."],
  ["kubeletDir", "The kubelet's root directory."],
  [
    "controller.replicas",
    "Replicas of a Deployment; more than one elect a leader. Ignored for a StatefulSet or DaemonSet.",
  ],
  [
    "controller.nodeSelector",
    "Nodes with these labels run the controller, such as node-role.kubernetes.io/infra.",
  ],
  ["controller.tolerations", "Tolerations of the controller."],
  ["driver.args", "Arguments of the driver everywhere, in the controller, and on nodes."],
  ["sidecars.resources", "Resource requests and limits of each Longshore container."],
  [
    "secretNamespaces",
    "Namespaces with secrets that classes name: the sidecars may read them there, and nowhere else.",
  ],
  [
    "secretsClusterWide",
    "Lets the sidecars read every secret of the cluster. Name namespaces instead if you can.",
  ],
  [
    "storageClasses",
    "Classes of volumes; what a class says of parameters cannot be changed once it is there.",
  ],
]);
