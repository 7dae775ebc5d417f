/** Has the API server try the objects that a conversion creates, without storing them: quotas, policies and webhooks answer as they would. */
import { KubeApiError, type KubeClient, type KubeObject, type Resource, resources } from "@longshore/kube";
import type { PlannedVolume, Refusal } from "./conversion-types.ts";

const fieldManager = "longshore-convert";

/** Why the API server would refuse; empty: it would not. @throws KubeTransportError, and what else is no answer to the object */
export async function probeCreations(
  kube: KubeClient,
  { toAfter, claimAfter }: PlannedVolume,
  signal: AbortSignal,
): Promise<readonly Refusal[]> {
  // Under a name of its own: the claim itself is there still.
  const { name = "", ...metadata } = claimAfter.metadata ?? {};
  const claim = { ...claimAfter, metadata: { ...metadata, name: `${name.slice(0, 240)}-longshore` } };
  const refusals = [
    await probeCreation(kube, resources.persistentVolumes, toAfter, toAfter.metadata?.name ?? "", signal),
    await probeCreation(
      kube,
      resources.persistentVolumeClaims,
      claim,
      `${metadata.namespace}/${name}`,
      signal,
    ),
  ];
  return refusals.filter((refusal) => refusal !== undefined);
}

/** The same for one object of any kind. @param shown its name for people */
export async function probeCreation<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  object: T,
  shown: string,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const { name = "", namespace } = object.metadata ?? {};
  const ref = namespace === undefined ? { name } : { namespace, name };
  const body = { apiVersion: "v1", kind: resource.kind, ...object };
  try {
    await kube.patch(
      resource,
      ref,
      { type: "apply", body, fieldManager, force: true, dryRun: true },
      { signal },
    );
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return refusalOf(error, `${resource.kind} ${shown}`);
  }
}

/** What the API server's answer says of the object. @throws the error where it is no answer to the object */
export function refusalOf(error: KubeApiError, object: string): Refusal {
  if (isUnavailable(error)) throw error;
  const reason = `the API server would refuse the new one: ${error.message}`;
  return error.message.includes("exceeded quota")
    ? {
        code: "quota",
        object,
        reason,
        remedy: "raise the quota by one claim of this size for the time of the conversion",
      }
    : {
        code: "admission",
        object,
        reason,
        remedy: "see which webhook, policy or right refuses it, and let it pass",
      };
}

/** The server could not serve now; a webhook that does not answer is a refusal of the object. */
function isUnavailable({ code, message }: KubeApiError): boolean {
  return code === 429 || (code >= 500 && !message.includes("webhook"));
}
