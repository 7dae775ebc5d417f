/** Sub-resources: which there are, and those that are a few lines: status and finalize. */
import type { KubeObject } from "@longshore/kube";
import { apiTime } from "@longshore/kube/basics";
import type { ApiAnswer } from "../api/api-request.ts";
import { methodNotSupported, unknownResource } from "../api/errors.ts";
import { own } from "../api/own.ts";
import { bindPod } from "./bind-pod.ts";
import { objectThroughWebhooks } from "./body-through-webhooks.ts";
import { createToken } from "./create-token.ts";
import { finishDeletion } from "./delete-object.ts";
import { evictPod } from "./evict-pod.ts";
import { withDecisions } from "./kinds/certificate-signing-request.ts";
import { metadataForUpdate } from "./metadata.ts";
import { changeEphemeralContainers, podLog, resizePod } from "./pod-subresources.ts";
import {
  commitOne,
  existing,
  groupResource,
  isDryRun,
  type KindRequest,
  type RegistryContext,
} from "./registry-context.ts";
import { scale } from "./scale.ts";
import { bodyObject, patchObject, updateObject } from "./write.ts";

/** Answers a request to a sub-resource. */
export type SubresourceHandler = (context: RegistryContext, request: KindRequest) => ApiAnswer;

/** The handler of the request's sub-resource. @throws KubeApiError 404 when the kind has none of that name */
export function subresourceHandler({ of, subresource }: KindRequest): SubresourceHandler {
  if (of.group === "certificates.k8s.io" && (subresource === "status" || subresource === "approval")) {
    return decision;
  }
  if (subresource === "status" && of.statusSubresource === true) return status;
  if (of.group === "" && of.kind === "Pod") {
    if (subresource === "binding") return bindPod;
    if (subresource === "eviction") return evictPod;
    if (subresource === "ephemeralcontainers") return changeEphemeralContainers;
    if (subresource === "resize") return resizePod;
    if (subresource === "log") return podLog;
  }
  if (subresource === "scale" && of.subresources?.scale !== undefined) return scale;
  if (of.group === "" && of.kind === "Namespace" && subresource === "finalize") return finalize;
  if (of.group === "" && of.kind === "ServiceAccount" && subresource === "token") return createToken;
  throw unknownResource();
}

function status(context: RegistryContext, request: KindRequest): ApiAnswer {
  switch (request.verb) {
    case "get":
      return { type: "object", code: 200, object: existing(request) };
    case "update":
      return updateObject(context, request, true);
    case "patch":
      return patchObject(context, request, true);
    default:
      throw methodNotSupported(groupResource(request.of), request.verb);
  }
}

/** The status of a CertificateSigningRequest, of which an approval changes the conditions alone. */
function decision(context: RegistryContext, request: KindRequest): ApiAnswer {
  const of = withDecisions(request.of, request.subresource === "approval", apiTime(context.clock.now()));
  return status(context, { ...request, of });
}

/** PUT of a namespace's `spec.finalizers`, the last act of its deletion. */
function finalize(context: RegistryContext, request: KindRequest): ApiAnswer {
  if (request.verb !== "update") throw methodNotSupported(groupResource(request.of), request.verb);
  const old = existing(request);
  const { spec, metadata } = bodyObject(request) as KubeObject & {
    spec?: { finalizers?: readonly string[] };
  };
  const given = own({
    ...old,
    metadata: metadataForUpdate(metadata, old),
    spec: (spec?.finalizers ?? []).length === 0 ? {} : spec,
  } as KubeObject);
  const next = objectThroughWebhooks(context, { operation: "UPDATE", request, object: given, old });
  if (isDryRun(request)) return { type: "object", code: 200, object: next };
  const identity = { namespace: "", name: old.metadata.name };
  const gone = finishDeletion(context, request, identity, next);
  return { type: "object", code: 200, object: gone ?? commitOne(context, request, identity, next) };
}
