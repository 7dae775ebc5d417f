/** What a pod makes its node need: the objects that its spec names (api/v1/pod VisitPodSecretNames and the like). Pure. */

/** A pod's spec, seen loosely: only references are looked for. */
// biome-ignore lint/suspicious/noExplicitAny: volumes have thirty forms, of which a name is read.
type Loose = Record<string, any>;

/** One object that a pod or a volume names. */
export interface Reference {
  readonly table: "secrets" | "configmaps" | "persistentvolumeclaims" | "serviceaccounts";
  readonly namespace: string;
  readonly name: string;
}

/** The objects that the pod names, all in its own namespace. */
export function referencesOfPod(pod: Loose): readonly Reference[] {
  const namespace: string = pod.metadata?.namespace ?? "";
  const spec: Loose = pod.spec ?? {};
  const found: Reference[] = [];
  const add = (table: Reference["table"], name: unknown) => {
    if (typeof name === "string" && name !== "") found.push({ table, namespace, name });
  };
  add("serviceaccounts", spec.serviceAccountName);
  for (const secret of spec.imagePullSecrets ?? []) add("secrets", secret.name);
  for (const list of [spec.initContainers, spec.containers, spec.ephemeralContainers]) {
    for (const container of list ?? []) {
      for (const from of container.envFrom ?? []) {
        add("secrets", from.secretRef?.name);
        add("configmaps", from.configMapRef?.name);
      }
      for (const { valueFrom } of container.env ?? []) {
        add("secrets", valueFrom?.secretKeyRef?.name);
        add("configmaps", valueFrom?.configMapKeyRef?.name);
      }
    }
  }
  for (const volume of spec.volumes ?? []) {
    add("configmaps", volume.configMap?.name);
    add("persistentvolumeclaims", volume.persistentVolumeClaim?.claimName);
    if (volume.ephemeral !== undefined) {
      // The claim of an ephemeral volume has this name (core/v1 EphemeralVolumeSource).
      add("persistentvolumeclaims", `${pod.metadata?.name}-${volume.name}`);
    }
    add("secrets", volume.secret?.secretName);
    add("secrets", volume.azureFile?.secretName);
    add("secrets", volume.csi?.nodePublishSecretRef?.name);
    for (const source of sourcesWithSecret) add("secrets", volume[source]?.secretRef?.name);
    for (const source of volume.projected?.sources ?? []) {
      add("secrets", source.secret?.name);
      add("configmaps", source.configMap?.name);
    }
  }
  return found;
}

/** Volume sources whose `secretRef` the node reads. */
const sourcesWithSecret = ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"] as const;

/**
 * The Secrets of a volume that its node reads; those for the controller's calls are not among them. A reference
 * without a namespace is meant in that of the claim.
 */
export function secretsOfVolume(pv: Loose): readonly Reference[] {
  const spec: Loose = pv.spec ?? {};
  const ofClaim: string = spec.claimRef?.namespace ?? "";
  const found: Reference[] = [];
  const add = (ref: Loose | undefined) => {
    if (typeof ref?.name === "string" && ref.name !== "") {
      found.push({ table: "secrets", namespace: ref.namespace || ofClaim, name: ref.name });
    }
  };
  add(spec.csi?.nodeStageSecretRef);
  add(spec.csi?.nodePublishSecretRef);
  add(spec.csi?.nodeExpandSecretRef);
  for (const source of sourcesWithSecret) add(spec[source]?.secretRef);
  const azure = spec.azureFile;
  if (azure !== undefined) add({ name: azure.secretName, namespace: azure.secretNamespace });
  return found;
}
