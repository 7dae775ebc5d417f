/**
 * New and changed objects on their way through the mutating webhooks: what these change is filled and admitted again, as if
 * the client had sent it, and those that want to see it are asked once more (apiserver admission/reinvocation.go).
 */
import type { KubeObject, ObjectMeta, Stored } from "@longshore/kube";
import { badRequest } from "../api/errors.ts";
import { own } from "../api/own.ts";
import { metadataForCreate } from "./metadata.ts";
import { isDryRun, type KindRequest, type RegistryContext } from "./registry-context.ts";

/**
 * The new object as it is to be stored.
 * @param given the metadata that the client gave: webhooks do not see a name that the server has made
 * @param admit fills and admits what a webhook has left
 */
export function createdThroughWebhooks(
  context: RegistryContext,
  request: KindRequest,
  object: KubeObject,
  given: ObjectMeta | undefined,
  admit: (object: KubeObject) => KubeObject,
): KubeObject {
  const { uid, creationTimestamp, generation, namespace, name } = object.metadata ?? {};
  const isDry = isDryRun(request);
  const showsNamespace = namespaceIsSeen(context, given);
  const seen = (one: KubeObject): KubeObject => {
    const meta: Record<string, unknown> = { ...one.metadata };
    for (const member of ["uid", "creationTimestamp", "generation"]) delete meta[member];
    if ((given?.name ?? "") === "") delete meta.name;
    if (!showsNamespace) delete meta.namespace;
    return own({ ...one, metadata: meta });
  };
  const whole = (mutated: KubeObject): KubeObject => {
    const { namespace: now = "", name: named = "" } = mutated.metadata ?? {};
    if (request.of.namespaced && now !== "" && now !== namespace) {
      throw badRequest(
        "the namespace of the provided object does not match the namespace sent on the request",
      );
    }
    const meta = { ...mutated.metadata, ...(named === "" && name !== undefined ? { name } : {}) };
    const metadata = metadataForCreate(request.of, meta, namespace, context, isDry);
    return admit({
      ...mutated,
      metadata: {
        ...metadata,
        ...(uid === undefined ? {} : { uid }),
        ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
        ...(generation === undefined ? {} : { generation }),
      },
    });
  };
  return inRounds(context, request, object, undefined, seen, whole);
}

/** The changed object as it is to be stored. @param given, admit as of {@link createdThroughWebhooks} */
export function updatedThroughWebhooks(
  context: RegistryContext,
  request: KindRequest,
  object: KubeObject,
  given: ObjectMeta | undefined,
  old: Stored,
  admit: (object: KubeObject) => KubeObject,
): KubeObject {
  const showsNamespace = namespaceIsSeen(context, given);
  const seen = (one: KubeObject): KubeObject => {
    if (showsNamespace) return one;
    const { namespace: _, ...metadata } = one.metadata ?? {};
    return own({ ...one, metadata });
  };
  return inRounds(context, request, object, old, seen, admit);
}

/** Whether webhooks see the namespace of the path, where the object does not say its own. */
function namespaceIsSeen({ version }: RegistryContext, given: ObjectMeta | undefined): boolean {
  return version.has("webhooksSeeNamespace") || (given?.namespace ?? "") !== "";
}

function inRounds(
  { webhooks }: RegistryContext,
  request: KindRequest,
  object: KubeObject,
  old: Stored | undefined,
  seen: (object: KubeObject) => KubeObject,
  whole: (object: KubeObject) => KubeObject,
): KubeObject {
  if (webhooks === undefined) return object;
  const base = { request, ...(old === undefined ? {} : { old }) };
  const operation = old === undefined ? "CREATE" : "UPDATE";
  let now = object;
  for (const isAgain of [false, true]) {
    const given = seen(now);
    const mutated = webhooks.mutate({ ...base, operation, object: given }, isAgain) ?? given;
    if (mutated === given) break;
    now = whole(mutated);
  }
  return now;
}
