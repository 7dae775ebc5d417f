/** The objects that announce the driver to the cluster: CSIDriver, classes, the namespace. */
import type { KubeObject } from "@longshore/kube";
import type { DeploymentPlan } from "../deployment-plan.ts";
import { deployOptionsAnnotation, labelsOf } from "./labels.ts";
import type { Rendered } from "./rendered.ts";

/** The namespace, which lets privileged pods in: the node part mounts. */
export function renderNamespace(plan: DeploymentPlan): readonly Rendered[] {
  if (!plan.createNamespace) return [];
  const labels = { ...labelsOf(plan), "pod-security.kubernetes.io/enforce": "privileged" };
  return [
    {
      object: {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: plan.namespace, labels },
      } as KubeObject,
    },
  ];
}

/**
 * The CSIDriver. Without an attacher `attachRequired` must be false: pods would wait for ever
 * (docs/behaviour/sidecars.md 9).
 */
export function renderCsiDriver(plan: DeploymentPlan): Rendered {
  const { needs, options } = plan;
  // The cluster may be another version by the next upgrade, which asks it.
  const { kubernetesVersion: _, ...kept } = options;
  return {
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: {
        name: plan.driver,
        labels: labelsOf(plan),
        annotations: { [deployOptionsAnnotation]: JSON.stringify(kept) },
      },
      spec: {
        attachRequired: needs.attach,
        podInfoOnMount: options.podInfo === true,
        fsGroupPolicy: options.fsGroupPolicy ?? "ReadWriteOnceWithFSType",
        ...(plan.kubernetesMinor >= 21 ? { storageCapacity: needs.capacity } : {}),
        volumeLifecycleModes: options.ephemeral === true ? ["Persistent", "Ephemeral"] : ["Persistent"],
      },
    } as KubeObject,
  };
}

/** The classes of volumes. */
export function renderClasses(plan: DeploymentPlan): readonly Rendered[] {
  const { options, needs } = plan;
  return plan.storageClasses.map(({ name, parameters }, index) => ({
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: {
        name,
        labels: labelsOf(plan),
        ...(options.defaultClass === true && index === 0
          ? { annotations: { "storageclass.kubernetes.io/is-default-class": "true" } }
          : {}),
      },
      provisioner: plan.driver,
      ...(Object.keys(parameters).length === 0 ? {} : { parameters: { ...parameters } }),
      reclaimPolicy: options.reclaimPolicy ?? "Delete",
      // Delayed, so that the volume is made where the pod can run.
      volumeBindingMode: options.bindingMode ?? (needs.topology ? "WaitForFirstConsumer" : "Immediate"),
      allowVolumeExpansion: options.resize === true,
    } as KubeObject,
  }));
}

/** The classes of snapshots. */
export function renderSnapshotClasses(plan: DeploymentPlan): readonly Rendered[] {
  const { needs } = plan;
  const of = (apiVersion: string, kind: string): Rendered => ({
    object: {
      apiVersion,
      kind,
      metadata: { name: plan.base, labels: labelsOf(plan) },
      driver: plan.driver,
      deletionPolicy: "Delete",
    } as KubeObject,
  });
  return [
    ...(needs.snapshot ? [of("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass")] : []),
    ...(needs.groupSnapshot ? [of("groupsnapshot.storage.k8s.io/v1", "VolumeGroupSnapshotClass")] : []),
  ];
}
