/**
 * NodeRestriction: a node writes only its own objects, and of those only the fields that nodes know
 * (kubernetes plugin/pkg/admission/noderestriction). It limits only nodes.
 */
import type { KubeObject, Pod, Stored } from "@longshore/kube";
import { forbidden, notFound } from "../api/errors.ts";
import { sameJson } from "../api/own.ts";
import { nodeOf } from "../authorization/node/node-authorizer.ts";
import { referencesOfPod } from "../authorization/node/pod-references.ts";
import { tokenRequestOf } from "../registry/create-token.ts";
import { groupResource, type KindRequest, type RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

/** Limits the writes of a node to its own objects and the fields that nodes know. */
export const nodeRestriction: AdmissionPlugin = {
  name: "NodeRestriction",
  onRequest(context, request) {
    const node = nodeOf(request.user);
    if (node === undefined || request.verb === "get" || request.verb === "list" || request.verb === "watch") {
      return;
    }
    const why = whyNot(context, request, node);
    if (why !== undefined) throw refuse(request, why);
  },
  onCreate(_context, request, object) {
    const node = nodeOf(request.user);
    const why = node === undefined ? undefined : whyNotCreate(request, node, object);
    if (why !== undefined) throw refuse(request, why);
    return object;
  },
  onUpdate(_context, request, next, old) {
    const node = nodeOf(request.user);
    const why = node === undefined ? undefined : whyNotUpdate(request, node, next, old);
    if (why !== undefined) throw refuse(request, why);
    return next;
  },
  onStatusUpdate(_context, request, next, old) {
    const node = nodeOf(request.user);
    const why = node === undefined ? undefined : whyNotStatus(request, node, next, old);
    if (why !== undefined) throw refuse(request, why);
  },
};

function refuse(request: KindRequest, why: string): Error {
  return forbidden(groupResource(request.of), request.name ?? "", why);
}

const keyOf = ({ of, subresource }: KindRequest) =>
  subresource === undefined ? of.plural : `${of.plural}/${subresource}`;

/** The checks that need only the request and the stored objects. */
function whyNot(context: RegistryContext, request: KindRequest, node: string): string | undefined {
  const { verb, name = "", namespace = "" } = request;
  switch (keyOf(request)) {
    case "pods":
      if (verb === "create") return undefined; // Checked later, with the pod itself.
      if (verb !== "delete") return `unexpected operation "${verb.toUpperCase()}"`;
      return podOf(context, namespace, name).spec?.nodeName === node
        ? undefined
        : `node "${node}" can only delete pods with spec.nodeName set to itself`;
    case "pods/status":
      return podOf(context, namespace, name).spec?.nodeName === node
        ? undefined
        : `node "${node}" can only update pod status for pods with spec.nodeName set to itself`;
    case "pods/eviction":
      return podOf(context, namespace, name).spec?.nodeName === node
        ? undefined
        : `node ${node} can only evict pods with spec.nodeName set to itself`;
    case "nodes":
    case "nodes/status":
      return verb === "create" || name === node
        ? undefined
        : `node "${node}" is not allowed to modify node "${name}"`;
    case "persistentvolumeclaims/status":
      return undefined;
    case "persistentvolumeclaims":
      return "may only update PVC status";
    case "serviceaccounts/token":
      return whyNoToken(context, request, node);
    default:
      return undefined;
  }
}

/** @throws KubeApiError 404 when there is no such pod: that says more than that it is not the node's */
function podOf(context: RegistryContext, namespace: string, name: string): Stored<Pod> {
  const pod = context.store.table("pods").get(namespace, name);
  if (pod === undefined) throw notFound({ group: "", resource: "pods" }, name);
  return pod as Stored<Pod>;
}

function whyNoToken(context: RegistryContext, request: KindRequest, node: string): string | undefined {
  const ref = tokenRequestOf(request).spec?.boundObjectRef;
  if (ref === undefined || ref === null || ref.kind !== "Pod" || ref.apiVersion !== "v1" || !ref.name) {
    return "node requested token not bound to a pod";
  }
  if ((ref.uid ?? "") === "") return "node requested token with a pod binding without a uid";
  const pod = podOf(context, request.namespace ?? "", ref.name);
  if (pod.metadata.uid !== ref.uid) {
    return `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`;
  }
  if (pod.spec?.nodeName !== node) {
    return "node requested token bound to a pod scheduled on a different node";
  }
  return undefined;
}

function whyNotCreate({ of }: KindRequest, node: string, object: KubeObject): string | undefined {
  const name = object.metadata?.name ?? "";
  switch (of.plural) {
    case "pods":
      return whyNoMirrorPod(node, object as Pod);
    case "nodes": {
      if (name !== node) return `node "${node}" is not allowed to modify node "${name}"`;
      const labels = Object.keys(object.metadata?.labels ?? {}).filter(isForbiddenLabel);
      return labels.length === 0 ? undefined : forbiddenLabels(node, labels);
    }
    // The authorizer lets these through: at a create it does not know the name.
    case "leases":
      if (object.metadata?.namespace !== "kube-node-lease") {
        return 'can only access leases in the "kube-node-lease" system namespace';
      }
      return name === node
        ? undefined
        : "can only access node lease with the same name as the requesting node";
    case "csinodes":
      return name === node ? undefined : "can only access CSINode with the same name as the requesting node";
    default:
      return undefined;
  }
}

const mirrorAnnotation = "kubernetes.io/config.mirror";

/** A node makes no pods but the images of those that it runs by itself, which may not lead to any object. */
function whyNoMirrorPod(node: string, pod: Pod): string | undefined {
  if (pod.metadata?.annotations?.[mirrorAnnotation] === undefined) {
    return `pod does not have "${mirrorAnnotation}" annotation, node "${node}" can only create mirror pods`;
  }
  if (pod.spec?.nodeName !== node) {
    return `node "${node}" can only create pods with spec.nodeName set to itself`;
  }
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.some((owner) => owner.kind !== "Node" || owner.name !== node)) {
    return `node "${node}" can only create pods with an owner reference set to itself`;
  }
  for (const { table } of referencesOfPod(pod)) {
    return `node "${node}" can not create pods that reference ${
      table === "serviceaccounts" ? "a service account" : table
    }`;
  }
  return undefined;
}

type NodeLike = KubeObject & {
  readonly spec?: { readonly taints?: unknown; readonly configSource?: unknown };
};

function whyNotUpdate({ of }: KindRequest, node: string, next: KubeObject, old: Stored): string | undefined {
  if (of.plural !== "nodes") return undefined;
  const [now, before] = [next as NodeLike, old as NodeLike];
  if (now.spec?.configSource !== undefined && !sameJson(now.spec.configSource, before.spec?.configSource)) {
    return `node "${node}" is not allowed to update configSource to a new non-nil configSource`;
  }
  if (!sameJson(now.spec?.taints ?? [], before.spec?.taints ?? [])) {
    return `node "${node}" is not allowed to modify taints`;
  }
  if (!sameJson(next.metadata?.ownerReferences ?? [], old.metadata.ownerReferences ?? [])) {
    return `node "${node}" is not allowed to modify ownerReferences`;
  }
  return whyNotLabels(node, next, old);
}

function whyNotLabels(node: string, next: KubeObject, old: Stored): string | undefined {
  const [labels, before] = [next.metadata?.labels ?? {}, old.metadata.labels ?? {}];
  const changed = [...new Set([...Object.keys(labels), ...Object.keys(before)])].filter(
    (key) => labels[key] !== before[key],
  );
  const forbiddenOnes = changed.filter(isForbiddenLabel);
  return forbiddenOnes.length === 0 ? undefined : forbiddenLabels(node, forbiddenOnes);
}

function forbiddenLabels(node: string, labels: readonly string[]): string {
  return `node "${node}" is not allowed to modify labels: ${[...labels].sort().join(", ")}`;
}

function whyNotStatus({ of }: KindRequest, node: string, next: KubeObject, old: Stored): string | undefined {
  if (of.plural === "nodes") return whyNotUpdate({ of } as KindRequest, node, next, old);
  if (of.plural === "pods" && !sameJson(next.metadata?.labels ?? {}, old.metadata.labels ?? {})) {
    return `node "${node}" cannot update labels through pod status`;
  }
  if (of.plural !== "persistentvolumeclaims") return undefined;
  const rest = (object: KubeObject) => {
    const {
      capacity: _c,
      conditions: _d,
      allocatedResources: _a,
      allocatedResourceStatuses: _s,
      ...status
    } = (object as KubeObject & { status?: Record<string, unknown> }).status ?? {};
    const { managedFields: _m, resourceVersion: _r, ...metadata } = object.metadata ?? {};
    return { ...object, metadata, status };
  };
  return sameJson(rest(next), rest(old))
    ? undefined
    : `node "${node}" is not allowed to update fields other than status.quantity and status.conditions`;
}

/** Labels of kubernetes.io and k8s.io that a node may set on itself. */
const ownLabels: ReadonlySet<string> = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
]);

function isForbiddenLabel(key: string): boolean {
  const [prefix = "", name] = key.split("/");
  if (name === undefined) return false;
  const isIn = (domain: string) => prefix === domain || prefix.endsWith(`.${domain}`);
  if (isIn("node-restriction.kubernetes.io")) return true;
  if (!isIn("kubernetes.io") && !isIn("k8s.io")) return false;
  return !ownLabels.has(key) && !isIn("kubelet.kubernetes.io") && !isIn("node.kubernetes.io");
}
