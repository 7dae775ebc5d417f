/** Who owns the CSIStorageCapacity objects, so that they go with the provisioner's workload (docs/behaviour/sidecars.md 2.9). */
import {
  type KubeClient,
  type KubeObject,
  type OwnerReference,
  type Resource,
  resources,
  type Stored,
} from "@longshore/kube";

/** The owner cannot be found. The text names the fields to set. */
export class CapacityOwnerError extends Error {
  override readonly name = "CapacityOwnerError";
}

const knownOwners: readonly Resource<KubeObject>[] = [
  resources.replicaSets,
  resources.deployments,
  resources.statefulSets,
  resources.daemonSets,
];

/**
 * Walks up from the pod: level 0 is the pod itself, 1 its StatefulSet, DaemonSet or ReplicaSet, 2 the Deployment.
 * @throws CapacityOwnerError when the way up ends before
 */
export async function capacityOwner(
  kube: KubeClient,
  pod: { readonly name: string; readonly namespace: string },
  level: number,
  signal: AbortSignal,
): Promise<OwnerReference> {
  const { namespace } = pod;
  let reference: Omit<OwnerReference, "controller"> = {
    apiVersion: "v1",
    kind: "Pod",
    name: pod.name,
    uid: "",
  };
  for (let at = 0; ; at++) {
    const { apiVersion, kind, name } = reference;
    const object: Stored<KubeObject> | undefined = await kube.get(
      resourceOf(apiVersion, kind),
      { name, namespace },
      { signal },
    );
    if (object === undefined) {
      throw new CapacityOwnerError(
        `${kind} ${namespace}/${name} not found: check \`podName\`, \`namespace\` and \`ownerRefLevel\``,
      );
    }
    if (at === level) return { apiVersion, kind, name, uid: object.metadata.uid, controller: true };
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) {
      throw new CapacityOwnerError(
        `${kind} ${namespace}/${name} has no controller: lower \`ownerRefLevel\` to ${at}`,
      );
    }
    reference = owner;
  }
}

/** For unknown kinds this assumes the usual plural. */
function resourceOf(apiVersion: string, kind: string): Resource<KubeObject> {
  if (kind === "Pod") return resources.pods;
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  const known = knownOwners.find((resource) => resource.group === group && resource.kind === kind);
  return (
    known ?? {
      group,
      versions: [apiVersion.slice(slash + 1)],
      kind,
      plural: `${kind.toLowerCase()}s`,
      namespaced: true,
    }
  );
}
