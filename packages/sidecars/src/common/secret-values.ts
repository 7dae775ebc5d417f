/** Reading the secret that a CSI call gets. Its values go into the request and nowhere else. */
import { type KubeClient, resources, type SecretReference } from "@longshore/kube";

/** A secret that a volume needs does not exist. The error never contains a secret value. */
export class SecretMissingError extends Error {
  override readonly name = "SecretMissingError";
}

/**
 * The values of the secret as text; none when no secret is named.
 * @throws SecretMissingError when it does not exist: never an empty map in its place (docs/behaviour/csi-plugin.md 13)
 */
export async function secretValues(
  kube: KubeClient,
  reference: SecretReference | undefined,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (reference === undefined) return {};
  const { name = "", namespace = "" } = reference;
  const secret = await kube.get(resources.secrets, { name, namespace }, { signal });
  if (secret === undefined)
    throw new SecretMissingError(`secret "${namespace}/${name}" not found: create it`);
  const decoded = (text: string) => Buffer.from(text, "base64").toString("utf8");
  return Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, text]) => [key, decoded(text)]));
}
