/** POST to a pod's `binding`: assigns the pod to a node (core/pod/storage BindingREST). */

import type { KubeObject, Pod, Stored } from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import type { ObjectAnswer } from "../api/api-request.ts";
import {
  apiError,
  badRequest,
  conflict,
  invalid,
  methodNotSupported,
  unsupportedValue,
} from "../api/errors.ts";
import { type Kind, tableKey } from "../api/kind.ts";
import { own } from "../api/own.ts";
import { bodyOfKind } from "./body-of-kind.ts";
import {
  commitOne,
  existing,
  groupResource,
  isDryRun,
  type KindRequest,
  type RegistryContext,
} from "./registry-context.ts";

interface Binding extends KubeObject {
  readonly target?: { readonly kind?: string; readonly name?: string };
}

/** Assigns a pod to a node. @throws KubeApiError when the body is not a Binding, or the pod cannot be bound */
export function bindPod(context: RegistryContext, request: KindRequest): ObjectAnswer {
  if (request.verb !== "create") throw methodNotSupported(groupResource(request.of), request.verb);
  const binding = bodyOfKind(request, "Binding") as Binding;
  const { kind = "", name = "" } = binding.target ?? {};
  if (kind !== "" && kind !== "Node") {
    throw invalid("", "Binding", binding.metadata?.name ?? "", [
      unsupportedValue("target.kind", kind, ["Node", "<empty>"]),
    ]);
  }
  if (name === "") {
    throw apiError(500, "", "target.name: Required value");
  }
  if (binding.metadata?.name !== undefined && binding.metadata.name !== request.name) {
    throw badRequest("name in URL does not match name in Binding object");
  }
  const pod = existing(request) as Stored<Pod>;
  const refuse = (why: string) => conflict({ group: "", resource: "pods/binding" }, pod.metadata.name, why);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw refuse(`pod ${pod.metadata.name} is being deleted, cannot be assigned to a host`);
  }
  if ((pod.spec?.nodeName ?? "") !== "") {
    throw refuse(`pod ${pod.metadata.name} is already assigned to node "${pod.spec?.nodeName}"`);
  }
  if (!isDryRun(request)) {
    const bound = boundPod(pod, name, binding, apiTime(context.clock.now()));
    commitOne(context, request, { namespace: pod.metadata.namespace ?? "", name: pod.metadata.name }, bound);
  }
  const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
  return { type: "object", code: 201, object: own(success as KubeObject) };
}

/** POST to a namespace's `bindings`: as {@link bindPod}, of the pod that the Binding has the name of (BindingREST, legacy form). */
export function bindNamed(context: RegistryContext, request: KindRequest): ObjectAnswer {
  const name = bodyOfKind(request, "Binding").metadata?.name ?? "";
  if (name === "") throw badRequest("Name parameter required.");
  const of = context.kinds.findKind("", "Pod") as Kind;
  return bindPod(context, { ...request, of, table: context.store.table(tableKey(of)), name });
}

function boundPod(pod: Stored<Pod>, nodeName: string, binding: Binding, now: string): KubeObject {
  const annotations = { ...pod.metadata.annotations, ...binding.metadata?.annotations };
  const others = (pod.status?.conditions ?? []).filter((c) => c.type !== "PodScheduled");
  const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: now };
  return {
    ...pod,
    metadata: { ...pod.metadata, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
    spec: { ...pod.spec, nodeName },
    status: { ...pod.status, conditions: [...others, scheduled] },
  } as KubeObject;
}
