/** Bodies of requests that are not stored as they are: reviews, bindings, evictions, scales. */
import type { KubeObject } from "@longshore/kube";
import type { KindRequest, RegistryContext, RequestWebhooks, WebhookWrite } from "./registry-context.ts";

/** The request with its body as the webhooks leave it, which none of them refuses. */
export function bodyThroughWebhooks(context: RegistryContext, request: KindRequest): KindRequest {
  const { body } = request;
  // What is no object is refused in its place.
  if (typeof body !== "object" || body === null || Array.isArray(body)) return request;
  const write = { operation: "CREATE", request, object: body as KubeObject, isBody: true } as const;
  return { ...request, body: objectThroughWebhooks(context, write) };
}

/** The object as the webhooks leave it, which none of them refuses; it is not filled in between. */
export function objectThroughWebhooks(
  { webhooks }: RegistryContext,
  write: WebhookWrite & { readonly object: KubeObject },
): KubeObject {
  if (webhooks === undefined) return write.object;
  const object = mutatedByWebhooks(webhooks, write);
  webhooks.validate({ ...write, object });
  return object;
}

/** The object as the mutating webhooks leave it. */
export function mutatedByWebhooks(
  webhooks: RequestWebhooks,
  write: WebhookWrite & { readonly object: KubeObject },
): KubeObject {
  const object = webhooks.mutate(write) as KubeObject;
  return object === write.object ? object : (webhooks.mutate({ ...write, object }, true) as KubeObject);
}
