/** What stage and publish calls carry besides the volume: publish context, secrets, pod facts, mount options. */
import { type Pod, resources } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import type { CsiNodeContext } from "./csi-node-context.ts";

/** A Secret that a call needs is not there. */
export class MissingSecretError extends Error {
  override readonly name = "MissingSecretError";
}

/** The VolumeAttachment that a call needs is not there. */
export class MissingAttachmentError extends Error {
  override readonly name = "MissingAttachmentError";
}

/**
 * What the driver's controller returned on attaching. A live GET: the node authorizer lets a
 * kubelet read single VolumeAttachments of its own.
 * @throws MissingAttachmentError
 */
export async function publishContextOf(
  context: CsiNodeContext,
  source: { readonly driver: string; readonly volumeHandle: string },
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const name = attachmentName(source.volumeHandle, source.driver, context.kubelet.nodeName);
  const attachment = await context.volumeHost.kube.get(resources.volumeAttachments, { name }, { signal });
  if (attachment === undefined) {
    throw new MissingAttachmentError(
      `VolumeAttachment ${name} (volume ${source.volumeHandle}) does not exist: the attach/detach controller makes it`,
    );
  }
  return { ...attachment.status?.attachmentMetadata };
}

/** The Secret's entries as text; an empty map only when no reference is given. @throws MissingSecretError */
export async function secretsOf(
  context: CsiNodeContext,
  reference: { readonly name?: string; readonly namespace?: string } | undefined,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (reference == null) return {};
  const { name = "", namespace = "" } = reference;
  const secret = await context.volumeHost.kube.get(resources.secrets, { name, namespace }, { signal });
  if (secret === undefined)
    throw new MissingSecretError(`Secret ${namespace}/${name} does not exist: create it`);
  return Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, base64]) => [
      key,
      Buffer.from(base64, "base64").toString("utf8"),
    ]),
  );
}

/** Facts of the pod for the volume context, where the driver asks for them. Source: docs/behaviour/csi-plugin.md 9.4. */
export function podInfoAttributes(pod: Pod, lifecycle: "Persistent" | "Ephemeral"): Record<string, string> {
  return {
    "csi.storage.k8s.io/pod.name": pod.metadata?.name ?? "",
    "csi.storage.k8s.io/pod.namespace": pod.metadata?.namespace ?? "",
    "csi.storage.k8s.io/pod.uid": pod.metadata?.uid ?? "",
    "csi.storage.k8s.io/serviceAccount.name": pod.spec?.serviceAccountName ?? "",
    "csi.storage.k8s.io/ephemeral": lifecycle === "Ephemeral" ? "true" : "false",
  };
}
